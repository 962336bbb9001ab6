"""What is printed when a run is finished."""

import pytest

from experiments.commands.outcome import highest_ari


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({"fedavg": 0.0, "ifca": 0.981, "wecfl": 0.979}, ["ifca", "wecfl"]),
        ({"fedavg": 0.0, "wecfl": 0.004}, []),
        ({"fedavg": -0.2, "wecfl": -0.1}, []),
        ({"fedavg": None, "wecfl": None}, []),
        ({"fedavg": None, "wecfl": 0.2}, ["wecfl"]),
    ],
)
def test_the_highest_agreement_is_named_where_it_is_above_chance(found, best):
    assert highest_ari({name: {"ari": {"mean": ari}} for name, ari in found.items()}) == best
