"""The server round: exchanges with clients, checks of answers, costs, state, evaluation.

Independent of the method. Analysis of a run is in `bcfl.analysis`.
"""

from bcfl.rounds import checkpoint
from bcfl.rounds.arguments import SameStartWarning
from bcfl.rounds.checkpoint import CheckpointError
from bcfl.rounds.evaluation import STATISTICS, evaluate, evaluate_finetuned, served_mixture
from bcfl.rounds.ledger import Ledger, failed_in_test, with_remedy
from bcfl.rounds.method import Method
from bcfl.rounds.round import RoundConfig, participants, server_round
from bcfl.rounds.running import FailingClientWarning, UntrainedWarning
from bcfl.rounds.state import FederationState, OtherMethodWarning, RoundRecord, initial_state
from bcfl.rounds.targets import OutputsWarning, TargetsWarning

__all__ = [
    "STATISTICS",
    "CheckpointError",
    "FailingClientWarning",
    "FederationState",
    "Ledger",
    "Method",
    "OtherMethodWarning",
    "OutputsWarning",
    "RoundConfig",
    "RoundRecord",
    "SameStartWarning",
    "TargetsWarning",
    "UntrainedWarning",
    "checkpoint",
    "evaluate",
    "evaluate_finetuned",
    "failed_in_test",
    "initial_state",
    "participants",
    "served_mixture",
    "server_round",
    "with_remedy",
]
