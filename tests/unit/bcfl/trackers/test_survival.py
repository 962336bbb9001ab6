import itertools
import math
from dataclasses import replace

import pytest
import torch

from bcfl import Aggregation, Federation, Objective
from bcfl.policies import FedAvg, LikelihoodAssociation
from bcfl.rounds.method import Method
from bcfl.trackers import AdaptiveMultiHypothesis
from bcfl.trackers.near_copies import NearCopies
from bcfl.trackers.survival import AncestorQuota, NScan, start


@pytest.fixture
def descended(hypothesis_at):
    """A hypothesis of a weight with a line of ancestors."""

    def of(lineage, weight=1.0):
        return hypothesis_at("x", [(0, 0)], [0], weight, lineage=tuple(lineage))

    return of


def weights(hypotheses):
    return [round(math.exp(h.log_weight), 6) for h in hypotheses]


def test_each_start_keeps_its_best(descended, successor_of):
    """Parents 0 and 3 descend from start 0, parent 1 from start 2, parent 2 from start 1."""
    parents = [descended((0, 0)), descended((2, 1)), descended((1, 2)), descended((0, 3))]
    successors = [
        successor_of(parent, weight)
        for parent, weight in ((0, -1.0), (0, -2.0), (3, -3.0), (1, -4.0), (2, -5.0), (1, -6.0))
    ]
    kept = AncestorQuota(3).extended(successors[:2], successors, parents, 2)
    assert kept == [successors[0], successors[1], successors[3], successors[4]]
    assert AncestorQuota(3).extended(successors[:4], successors, parents, 0)[4:] == [successors[4]]


def test_after_the_quotas_rounds_weight_alone_counts(descended, successor_of):
    parents = [descended((0,)), descended((1,))]
    successors = [successor_of(0, -1.0), successor_of(1, -2.0)]
    of = [len(AncestorQuota(2).extended(successors[:1], successors, parents, r)) for r in range(4)]
    assert of == [2, 2, 1, 1]


def test_in_the_first_round_the_parents_are_the_starts(descended, successor_of):
    parents = [descended(()), descended(())]
    assert start(parents, successor_of(1, 0.0)) == 1
    assert start([descended((7, 3, 0))], successor_of(0, 0.0)) == 7


def test_the_family_with_the_most_weight_lives_on(descended):
    """Two rounds back: ancestor 5 has .3 + .25, ancestor 2 has .45."""
    lines = [((0, 2, 9), 0.45), ((0, 5, 1), 0.3), ((0, 5, 3), 0.25)]
    hypotheses = [descended(*line) for line in lines]
    assert NScan(2).pruned(hypotheses) == hypotheses[1:]
    assert NScan(1).pruned(hypotheses) == hypotheses[:1]
    assert NScan(3).pruned(hypotheses) == hypotheses
    assert NScan(4).pruned(hypotheses) == hypotheses


def test_weights_that_underflow_still_make_families(descended):
    light = [replace(descended((i, 0)), log_weight=-2000.0 - i) for i in range(3)]
    assert NScan(2).pruned(light) == light[:1]


@pytest.mark.parametrize(("rule", "name"), [(AncestorQuota, "rounds"), (NScan, "depth")])
def test_numbers_out_of_range_are_refused(rule, name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        rule(**{name: 0})


@pytest.fixture
def started(linear, clients):
    """A federation of a tracker that begins with several hypotheses."""

    def of(tracker, starts, **options):
        objective = Objective(local_steps=3, batch_size=4, curvature="ggn")
        policy = LikelihoodAssociation(num_clusters=2, objective=objective, temperature=1.0)
        return Federation(
            clients, linear, Method(policy=policy, tracker=tracker, starts=starts, **options)
        )

    return of


def first_networks(state):
    return [p.blocks[0].gaussian.mean for h in state.hypotheses for p in h.clusters]


def test_starts_have_networks_of_their_own_and_equal_weights(started):
    state = started(AdaptiveMultiHypothesis(max_hypotheses=4), 3).initial_state()
    means = first_networks(state)
    assert len(means) == 6
    assert all(not torch.equal(a, b) for i, a in enumerate(means) for b in means[:i])
    assert len({p.key for h in state.hypotheses for p in h.clusters}) == 6
    assert state.hypotheses.weights.tolist() == pytest.approx([1 / 3] * 3)
    assert all(h.lineage == () for h in state.hypotheses)
    one = started(AdaptiveMultiHypothesis(max_hypotheses=4), 1).initial_state()
    assert all(torch.equal(a, b) for a, b in zip(first_networks(one), means, strict=False))


def test_common_starts_differ_between_hypotheses_alone(started):
    state = started(AdaptiveMultiHypothesis(max_hypotheses=4), 2, common_start=True).initial_state()
    first, same, second, equal = first_networks(state)
    assert torch.equal(first, same)
    assert torch.equal(second, equal)
    assert not torch.equal(first, second)


def test_less_than_one_start_is_refused():
    with pytest.raises(ValueError, match="starts must be a whole number of at least 1, got 0"):
        Method(policy=FedAvg(Objective()), starts=0)


def test_lines_of_descent_say_who_competed_where(started):
    """Following `parents` through the history gives `lineage`."""
    tracker = AdaptiveMultiHypothesis(max_hypotheses=4, adapt=False, near_copies=None, proposals=())
    state = started(tracker, 3).run(4).state
    for index, one in enumerate(state.hypotheses):
        line = []
        for snapshot in reversed(state.history):
            (index,) = snapshot.parents[index]
            line.append(index)
        assert one.lineage == tuple(reversed(line))
        assert one.lineage[0] in range(3)


def test_a_quota_keeps_all_starts_alive_through_merges(started):
    copies = NearCopies(1e-3)
    with_quota = AdaptiveMultiHypothesis(
        max_hypotheses=2, quota=AncestorQuota(3), near_copies=copies
    )
    run = started(with_quota, 4)
    starts = []
    run.run(
        5,
        on_round=lambda state, _: starts.append({h.lineage[0] for h in state.hypotheses}),
    )
    assert starts[:3] == [set(range(4))] * 3
    assert len(starts[3]) <= 2
    assert all(later <= earlier for earlier, later in itertools.pairwise(starts))


def test_merged_hypotheses_keep_the_start_of_the_heaviest(hypothesis_at, linear):
    far = [(0, 0), (10, 0)]
    one = hypothesis_at("x", far, [0, 1], 0.3, lineage=(1, 4), parents=(4,))
    other = hypothesis_at("y", far, [1, 1], 0.7, lineage=(2, 0), parents=(0,))
    (merged,) = NearCopies().merge([one, other], Aggregation(), linear)
    assert merged.lineage == (2, 0)
    assert merged.parents == (0, 4)
    assert weights([merged]) == [1.0]
