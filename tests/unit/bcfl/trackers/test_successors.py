"""Expansion over parents, capping, captured mass, and what each tracker keeps."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from bcfl import Aggregation, Association, Hypothesis, HypothesisSet, Objective, drive
from bcfl.policies import Ranking, candidate
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.trackers import Consensus, Greedy, MultiHypothesis
from bcfl.trackers.successors import expand, log_captured_mass

NAMES = ("a", "b")
LABELS = ([0, 0], [0, 1], [1, 0], [1, 1])


@dataclass(frozen=True)
class Table:
    """Ranks the four associations of two clients by log weights that depend on the first label.

    `read` notes how many candidates were looked at.
    """

    weights: dict
    read: list

    num_clusters = 2

    def associate(self, hypothesis, context):
        yield from ()
        mine = self.weights[int(hypothesis.association.labels[0])]

        def candidates():
            for index in np.argsort(-np.array(mine), kind="stable"):
                self.read.append(index)
                labels = dict(zip(NAMES, LABELS[index], strict=True))
                yield candidate(hypothesis, labels, Objective(), log_weight=mine[index])

        return Ranking(candidates(), float(np.logaddexp.reduce(mine)))


WEIGHTS = {0: [-1.0, -2.0, -3.0, -4.0], 1: [-4.0, -0.5, -2.5, -9.0]}


@pytest.fixture
def parents(linear, newborn):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    return HypothesisSet.weighted(
        [
            Hypothesis(
                clusters=clusters,
                association=Association(NAMES, np.array(labels), 2),
                log_weight=np.log(weight),
            )
            for labels, weight in (([0, 0], 0.8), ([1, 0], 0.2))
        ],
        3,
        0.0,
    )


def end_of(steps, answer=None):
    """Answer trainings by `answer`; returns the requests of each exchange and the result."""
    result, exchanges = drive(steps, answer, return_exchanges=True)
    return [exchange.requests for exchange in exchanges], result


def trained(request: Train):
    value = float(NAMES.index(request.client) + 1)
    return Trained(
        mean=torch.full((8,), value),
        buffers=torch.empty(0),
        curvature=torch.ones(()),
        num_samples=1,
    )


def wanted(memory, decay=0.5):
    """All successors by brute force: (log weight, parent, labels), heaviest first."""
    carried = {"accumulate": np.log([0.8, 0.2]), "replace": np.log([0.5, 0.5])}
    forgotten = decay * np.log([0.8, 0.2])
    carried["forget"] = forgotten - np.logaddexp.reduce(forgotten)
    rows = [(carried[memory][p] + WEIGHTS[p][i], p, LABELS[i]) for p in range(2) for i in range(4)]
    return sorted(rows, key=lambda row: -row[0])


@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
@pytest.mark.parametrize("keep", [1, 3, None])
def test_successors_of_all_parents_are_ranked_together(parents, context, memory, keep):
    steps = expand(
        parents.hypotheses,
        Table(WEIGHTS, []),
        Aggregation(memory=memory, decay=0.5),
        context(NAMES, 3, None),
        keep,
    )
    _, (found, log_total) = end_of(steps)
    best = wanted(memory)[:keep]
    common = found[0].log_weight - best[0][0]
    assert [s.log_weight - common for s in found] == pytest.approx([w for w, _, _ in best])
    assert [s.parent for s in found] == [p for _, p, _ in best]
    assert [s.candidate.association.labels.tolist() for s in found] == [
        labels for *_, labels in best
    ]
    total = np.logaddexp.reduce([w for w, _, _ in wanted(memory)])
    assert log_total - common == pytest.approx(total)
    captured = np.logaddexp.reduce([w for w, _, _ in best]) - total
    assert log_captured_mass(found, log_total) == pytest.approx(min(captured, 0.0))


@dataclass(frozen=True)
class Referred:
    """The table's rankings, whose weights count from references of any size."""

    table: Table
    references: tuple

    num_clusters = 2

    def associate(self, hypothesis, context):
        ranking = yield from self.table.associate(hypothesis, context)
        reference = self.references[int(hypothesis.association.labels[0])]
        return replace(ranking, reference=reference)


@pytest.mark.parametrize("common", [0, 10**12, -(10**17), 10**30])
def test_what_all_references_have_in_common_does_not_matter(parents, context, common):
    found = []
    for shift in (0, common):
        references = (Fraction(shift), Fraction(shift) + Fraction(1, 4))
        policy = Referred(Table(WEIGHTS, []), references)
        steps = expand(parents.hypotheses, policy, Aggregation(), context(NAMES, 3, None), None)
        _, (successors, log_total) = end_of(steps)
        found.append(([(s.log_weight, s.parent) for s in successors], log_total))
    assert found[0] == found[1]
    assert found[0][0][0] == (pytest.approx(-0.5), 1)


def test_rankings_are_read_no_further_than_needed(parents, context):
    table = Table(WEIGHTS, [])
    end_of(expand(parents.hypotheses, table, Aggregation(), context(NAMES, 3, None), 1))
    assert len(table.read) <= 3


def test_each_parent_gives_at_most_its_candidates(parents, context):
    steps = expand(
        parents.hypotheses, Table(WEIGHTS, []), Aggregation(), context(NAMES, 3, 1), None
    )
    _, (found, _) = end_of(steps)
    assert sorted(s.parent for s in found) == [0, 1]


def test_an_unknown_total_gives_an_unknown_mass(parents):
    assert np.isnan(log_captured_mass(parents.hypotheses, float("nan")))


def step(tracker, parents, linear, context, memory="replace"):
    return end_of(
        tracker.step(
            parents,
            Table(WEIGHTS, []),
            Aggregation(memory=memory),
            context(NAMES, 3, tracker.candidates_per_parent),
        ),
        trained,
    )


def test_greedy_keeps_the_heaviest(parents, linear, context):
    _, (after, info) = step(Greedy(), parents, linear, context)
    assert (len(after), after.round, info.num_candidates) == (1, 4, 1)
    assert after.best.association.labels.tolist() == [0, 1]
    assert after.best.parents == (1,)
    assert after.best.log_weight == 0.0


def test_many_hypotheses_keep_the_heaviest_over_all_parents(parents, linear, context):
    asked, (after, _) = step(MultiHypothesis(3), parents, linear, context, "accumulate")
    best = wanted("accumulate")[:3]
    log_weights = np.array([w for w, _, _ in best])
    assert after.log_weights == pytest.approx(log_weights - np.logaddexp.reduce(log_weights))
    assert [h.parents for h in after] == [(p,) for _, p, _ in best]
    assert [h.association.labels.tolist() for h in after] == [labels for *_, labels in best]
    assert len(asked) == 1


@pytest.mark.parametrize("min_weight", [0.0, 0.1, 0.2, 0.9])
def test_improbable_hypotheses_are_pruned_before_they_are_trained(
    parents, linear, context, min_weight
):
    """Probabilities among those that are kept; the heaviest is never pruned."""
    tracker = MultiHypothesis(4, min_weight=min_weight)
    _, (after, info) = step(tracker, parents, linear, context, "accumulate")
    log_weights = np.array([w for w, _, _ in wanted("accumulate")[:4]])
    weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    left = weights[weights >= min(min_weight, weights[0])]
    assert after.weights == pytest.approx(left / left.sum())
    assert info.num_candidates == len(left) == {0.0: 4, 0.1: 3, 0.2: 2, 0.9: 1}[min_weight]


def test_hypotheses_that_agree_share_their_models(parents, linear, context):
    """Both parents have the same clusters, so equal contributors give one object."""
    _, (after, _) = step(MultiHypothesis(4), parents, linear, context)
    models = {}
    for hypothesis in after:
        for index, cluster in enumerate(hypothesis.clusters):
            members = tuple(np.flatnonzero(hypothesis.association.labels == index))
            assert models.setdefault((index, members), cluster.blocks[0]) is cluster.blocks[0]


def test_a_consensus_is_the_weighted_mean(parents, linear, context):
    _, (after, info) = step(Consensus(2), parents, linear, context)
    best = wanted("replace")[:2]
    log_weights = np.array([w for w, _, _ in best])
    weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    serving = sum(w * np.eye(2)[labels] for w, (*_, labels) in zip(weights, best, strict=True))
    assert len(after) == 1
    assert info.num_candidates == 2
    np.testing.assert_allclose(after.best.association.serving, serving)
    assert after.log_captured_mass == pytest.approx(
        np.logaddexp.reduce(log_weights) - np.logaddexp.reduce([w for w, _, _ in wanted("replace")])
    )
    means = [1.5 if labels == [0, 0] else 1.0 for *_, labels in best]
    assert after.best.clusters[0].mean(linear).tolist() == pytest.approx(
        [float(weights @ means)] * 8
    )
