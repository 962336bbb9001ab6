"""What is printed when a run is finished."""

import pytest

from experiments.commands.outcome import agreement, highest_ari


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


@pytest.mark.parametrize(
    ("data", "one_group", "line"),
    [
        ({"groups": 4, "steps": 1}, False, "true groups: 4 · highest ARI: ifca"),
        ({"groups": 2, "steps": 4}, False, "2 concepts in 4 time steps · highest ARI: ifca"),
        (
            {"groups": 2, "steps": 4},
            True,
            "2 concepts in 4 time steps · all clients share one at every step, so that ARI tells "
            "nothing of the methods",
        ),
        ({"groups": None}, False, ""),
        ({"groups": 1}, False, ""),
    ],
)
def test_agreement_is_told_where_it_tells_something(data, one_group, line):
    results = {"fedavg": {"ari": {"mean": 0.0}}, "ifca": {"ari": {"mean": 0.9}}}
    assert agreement(results, data, one_group=one_group) == line
