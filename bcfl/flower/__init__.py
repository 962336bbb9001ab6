"""Federations on Flower's engines, simulated with Ray or deployed over a network.

Needs `pip install 'bcfl[flower]'`, and `'bcfl[flower-simulation]'` for simulations; nothing of
Flower is imported before one of these functions is called.
"""

from bcfl.flower.apps import client_app, read_client, read_privacy, server_app
from bcfl.flower.deployment import Deployment
from bcfl.flower.folder import DeploymentFolder
from bcfl.flower.node import node_app
from bcfl.flower.simulation import simulated_grid

__all__ = [
    "Deployment",
    "DeploymentFolder",
    "client_app",
    "node_app",
    "read_client",
    "read_privacy",
    "server_app",
    "simulated_grid",
]
