"""Clustered federated learning as probabilistic data association.

Which cluster a client belongs to is an unknown with a posterior probability.

Start here:

- `bcfl.ClientData.from_arrays(name, train, test)` holds the samples of one client.
- `bcfl.methods.build("bcfl-race")` makes a method by its name; `bcfl.methods.available()` lists
  the names.
- `bcfl.Federation(clients, network, method)` puts clients, a torch network and a method together.
- `bcfl.Federation.run(rounds)` trains, and gives a `bcfl.Run`.
- `bcfl.Run` has the association probabilities, predictions, scores and figures; it lists its
  methods by what they are for.

Further names: `bcfl.Objective` says how clients train, `bcfl.Model` describes a network in detail,
`bcfl.Privacy` says how clients randomise what they send, and `bcfl.Prediction` is what a run
predicts. `bcfl.HypothesisSet`, `bcfl.Hypothesis` and
`bcfl.Association` are the posterior. Methods of your own are made of `bcfl.policies` and
`bcfl.trackers`. Everything is loaded when it is first used.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec
from os.path import dirname, realpath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcfl import analysis, executors, methods, policies, trackers
    from bcfl.aggregation.aggregation import Aggregation
    from bcfl.analysis.prediction.mixture import Prediction
    from bcfl.analysis.run import Run
    from bcfl.architecture.model import BlockSpec, Model
    from bcfl.data.clients import ClientData
    from bcfl.data.view import View
    from bcfl.executors.privacy import Privacy
    from bcfl.federation import Federation
    from bcfl.hypotheses.association import Association
    from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
    from bcfl.protocol.driving import drive
    from bcfl.protocol.objective import Objective
    from bcfl.protocol.prediction_rule import PredictionRule
    from bcfl.rounds import checkpoint
    from bcfl.rounds.method import Method
    from bcfl.rounds.state import FederationState, RoundRecord

_PACKAGES = ("analysis", "executors", "methods", "policies", "trackers")
_NAMES = {
    "Aggregation": "bcfl.aggregation.aggregation",
    "Association": "bcfl.hypotheses.association",
    "BlockSpec": "bcfl.architecture.model",
    "ClientData": "bcfl.data.clients",
    "Federation": "bcfl.federation",
    "FederationState": "bcfl.rounds.state",
    "Hypothesis": "bcfl.hypotheses.hypothesis",
    "HypothesisSet": "bcfl.hypotheses.hypothesis",
    "Method": "bcfl.rounds.method",
    "Model": "bcfl.architecture.model",
    "Objective": "bcfl.protocol.objective",
    "Prediction": "bcfl.analysis.prediction.mixture",
    "PredictionRule": "bcfl.protocol.prediction_rule",
    "Privacy": "bcfl.executors.privacy",
    "RoundRecord": "bcfl.rounds.state",
    "Run": "bcfl.analysis.run",
    "View": "bcfl.data.view",
    "drive": "bcfl.protocol.driving",
}

__all__ = [
    "Aggregation",
    "Association",
    "BlockSpec",
    "ClientData",
    "Federation",
    "FederationState",
    "Hypothesis",
    "HypothesisSet",
    "Method",
    "Model",
    "Objective",
    "Prediction",
    "PredictionRule",
    "Privacy",
    "RoundRecord",
    "Run",
    "View",
    "analysis",
    "checkpoint",
    "drive",
    "executors",
    "methods",
    "policies",
    "trackers",
]


def _warn_of_shadows(beside: tuple[str, ...] = ("assignment", "experiments", "posteriors")) -> None:
    """Warn of packages of this distribution that Python would import from another place."""
    ours = dirname(dirname(realpath(__file__)))
    for name in beside:
        spec = find_spec(name)
        places = list(spec.submodule_search_locations or [spec.origin or ""]) if spec else []
        if places and ours != dirname(realpath(places[0])):
            warnings.warn(
                f"`import {name}` finds {places[0]}, not the package that belongs to bcfl in "
                f"{ours}; rename the former, or run Python from another folder",
                RuntimeWarning,
                stacklevel=3,
            )


_warn_of_shadows()


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _PACKAGES:
        return import_module(f"bcfl.{name}")
    elif name == "checkpoint":
        value = import_module("bcfl.rounds.checkpoint")
    else:
        raise AttributeError(f"module 'bcfl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
