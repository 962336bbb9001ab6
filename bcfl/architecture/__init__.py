"""Networks as blocks of parameters that all clients, a cluster or one client share.

Here: layouts, scopes of blocks (global, cluster, client), and architectures built from blocks:
additive (CAM), decomposed (APD, FedWeIT), dropout. Concrete networks are in `experiments.models`.
"""

from bcfl.architecture.additive import AdditiveNetwork, additive
from bcfl.architecture.decomposition import Decomposition, decomposed
from bcfl.architecture.dropout import with_dropout
from bcfl.architecture.fedweit import Transfer, transferring
from bcfl.architecture.layout import Layers, Layout, Slot
from bcfl.architecture.model import BlockSpec, Model, Scope
from bcfl.architecture.probing import Network, as_model

__all__ = [
    "AdditiveNetwork",
    "BlockSpec",
    "Decomposition",
    "Layers",
    "Layout",
    "Model",
    "Network",
    "Scope",
    "Slot",
    "Transfer",
    "additive",
    "as_model",
    "decomposed",
    "transferring",
    "with_dropout",
]
