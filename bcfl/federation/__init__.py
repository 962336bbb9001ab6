"""The server round and all that runs it."""

from bcfl.federation.federation import Federation
from bcfl.federation.ledger import Ledger
from bcfl.federation.method import Method
from bcfl.federation.predictions import Prediction, PredictionRule
from bcfl.federation.round import Setting, server_round
from bcfl.federation.run import Run
from bcfl.federation.state import FederationState, RoundRecord, initial_state

__all__ = [
    "Federation",
    "FederationState",
    "Ledger",
    "Method",
    "Prediction",
    "PredictionRule",
    "RoundRecord",
    "Run",
    "Setting",
    "initial_state",
    "server_round",
]
