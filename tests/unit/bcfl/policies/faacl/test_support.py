from dataclasses import replace

import pytest

from bcfl import drive
from bcfl.policies.faacl.support import Support, SupportTesting
from bcfl.protocol.statistics.support import SupportTest

TESTING = SupportTesting(epsilon=0.1, alpha=0.1)


@pytest.fixture
def find(linear, newborn, context):
    """Test clusters whose devices' p-values are given by (device, offered cluster)."""

    def of(members, p_values, partitions=None, before=None, present=None, pairs=20, **changes):
        models = [newborn(linear, seed) for seed in range(len(members))]
        keys = [model.key for model in models]
        devices = [device for row in members for device in row]
        steps = replace(TESTING, **changes).find(
            models,
            members,
            partitions or (0,) * len(members),
            before or Support(),
            context(present or devices),
        )

        def answer(r):
            p_value = p_values.get((r.client, keys.index(r.models[1])))
            return None if p_value is None else SupportTest(p_value, pairs, 20)

        findings, (exchange,) = drive(steps, answer, return_exchanges=True)
        tests = {(r.client, *(keys.index(key) for key in r.models)) for r in exchange.requests}
        return tests, findings

    return of


def test_each_device_compares_its_own_model_with_each_other_of_its_partition(find):
    asked, found = find([["a"], ["b", "c"], ["d"]], {}, partitions=(0, 0, 1))
    assert asked == {("a", 0, 1), ("b", 1, 0), ("c", 1, 0)}
    assert (found.num_tests, found.complete) == (0, False)


def test_one_device_can_veto_and_the_level_itself_supports(find):
    p_values = {("a", 1): 0.1, ("b", 0): 0.02, ("c", 0): 0.1001}
    _, found = find([["a"], ["b", "c"]], p_values)
    assert found.support.p_values == {(0, 1): 0.1}
    assert (found.num_tests, found.complete) == (3, True)


def test_the_worst_device_gives_the_p_value(find):
    _, found = find([["a"], ["b", "c"]], {("a", 1): 0.5, ("b", 0): 0.02, ("c", 0): 0.05})
    assert found.support.p_values == {(1, 0): 0.05}


def test_absent_devices_have_no_vote_and_a_silent_cluster_keeps_its_supporters(find):
    before = Support({(0, 1): 0.03, (1, 0): 0.04})
    asked, found = find(
        [["a"], ["b", "c"]], {("b", 0): 0.5}, before=before, present=["b"], withdraws=True
    )
    assert asked == {("b", 1, 0)}
    assert found.support.p_values == {(0, 1): 0.03}
    assert not found.complete


@pytest.mark.parametrize("withdraws", [False, True])
def test_supporters_stay_unless_support_is_withdrawn(find, withdraws):
    before = Support({(0, 1): 0.03, (1, 0): 0.04})
    p_values = {("a", 1): 0.6, ("b", 0): 0.07}
    _, found = find([["a"], ["b"]], p_values, before=before, withdraws=withdraws)
    kept = {} if withdraws else {(0, 1): 0.03}
    assert found.support.p_values == {(1, 0): 0.07, **kept}


@pytest.mark.parametrize(("pairs", "unable"), [(3, ("a", "b")), (4, ())])
def test_devices_with_too_few_pairs_are_named(find, pairs, unable):
    _, found = find([["a"], ["b"]], {("a", 1): 1.0, ("b", 0): 1.0}, pairs=pairs)
    assert found.unable == unable


def test_support_is_remembered_as_lists():
    support = Support({(1, 0): 0.25, (0, 2): 0.5})
    assert support.state == [[0, 2, 0.5], [1, 0, 0.25]]
    assert Support.of({"supports": support.state}) == support
    assert Support.of({}) == Support()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"epsilon": -1.0}, "epsilon must be finite and at least 0, got -1"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1, got 1"),
        ({"loss": "mean"}, "loss must be 'raw' or 'capped', got 'mean'"),
    ],
)
def test_impossible_numbers_are_refused(changes, text):
    with pytest.raises(ValueError, match=text):
        SupportTesting(**changes)
