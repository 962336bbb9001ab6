"""Settings as plain values: what differs from the defaults, and how clients train."""

import json
from dataclasses import dataclass, field

import numpy as np

from bcfl import Federation, Objective, methods
from bcfl.rounds.settings import LONGEST, plain


def test_settings_of_a_run_name_method_network_and_federation(linear, clients):
    method = methods.build("bcfl-mht-4", num_clusters=2, objective=Objective(learning_rate=0.05))
    run = Federation(clients, linear, method, seed=3, client_fraction=0.5).run(1)
    settings = json.loads(json.dumps(run.settings))
    assert settings == run.settings
    assert (settings["method"], settings["seed"]) == ("bcfl-mht-4", 3)
    assert (settings["client_fraction"], settings["dtype"]) == (0.5, "torch.float32")
    assert settings["network"] == {"name": "linear", "parameters": 8, "likelihood": "categorical"}
    assert settings["policy"]["num_clusters"] == 2
    assert settings["policy"]["objective"]["learning_rate"] == 0.05
    assert settings["policy"]["objective"]["local_steps"] == Objective().local_steps
    assert settings["tracker"] == {"kind": "AdaptiveMultiHypothesis", "max_hypotheses": 4}
    assert "privacy" not in settings


@dataclass(frozen=True)
class Part:
    scale: float = 1.0
    table: np.ndarray = field(default_factory=lambda: np.ones(3))
    update: object = len
    names: tuple[str, ...] = ()


def test_parts_tell_what_is_not_at_its_default():
    assert plain(Part()) == {"kind": "Part", "table": {"kind": "ndarray"}}
    told = plain(Part(scale=2.0, names=("a",) * (LONGEST + 1), update=max))
    assert told == {
        "kind": "Part",
        "scale": 2.0,
        "table": {"kind": "ndarray"},
        "names": f"{LONGEST + 1} values",
    }


@dataclass
class Odd:
    unset: int = field(init=False)
    number: object = field(default_factory=lambda: np.int64(3))
    owner: object = None

    def __eq__(self, other):
        raise TypeError("never")


def test_parts_of_ones_own_never_end_a_run():
    odd = Odd(owner=[])
    odd.owner = odd
    assert plain(odd)["kind"] == "Odd"
    assert plain(np.float32(0.5)) == 0.5
