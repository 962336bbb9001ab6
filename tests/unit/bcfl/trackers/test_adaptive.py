import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from bcfl import Aggregation, Federation, Objective
from bcfl.analysis.graphs import hypothesis_tree
from bcfl.policies import LikelihoodAssociation, ranking
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.rounds.checkpoint import load, save
from bcfl.rounds.method import Method
from bcfl.trackers import AdaptiveMultiHypothesis, Greedy, MultiHypothesis, adaptive
from bcfl.trackers.proposals import Birth, Death, SplitAndFree
from bcfl.trackers.survival import AncestorQuota, NScan

SPLIT = SplitAndFree(min_members=2)
EVERYTHING = {
    "proposals": (SPLIT, Birth(min_members=2, max_clusters=4), Death()),
    "quota": AncestorQuota(3),
    "n_scan": NScan(3),
}


@pytest.fixture
def federation(clients, linear):
    def of(tracker, *, memory="replace", starts=1, wrap=lambda policy: policy, **options):
        chosen = {"judge": "training", "temperature": 2.0, "num_clusters": 2}
        chosen |= {name: options.pop(name) for name in chosen if name in options}
        objective = Objective(local_steps=3, batch_size=4, curvature="ggn")
        method = Method(
            policy=wrap(LikelihoodAssociation(objective=objective, **chosen)),
            tracker=tracker,
            aggregation=Aggregation(memory=memory),
            starts=starts,
            validation=0.25 if chosen["judge"] == "held_out" else 0.0,
        )
        return Federation(clients, linear, method, device="cpu", **options)

    return of


def numbers(state):
    """All numbers of a state, proposals and history included."""
    found = []
    for h in state.hypotheses.competing:
        found += [h.association.serving.tolist(), h.log_weight, h.parents, h.lineage, h.kind]
        for posterior in h.clusters:
            block = posterior.blocks[0]
            found.append(block.key)
            for tensor in (block.gaussian.mean, block.gaussian.precision, block.prior.precision):
                found.append(tensor.tolist())
    for s in state.history:
        found += [s.log_weights.tolist(), s.parents, s.log_captured_mass]
        found += [(p.association.labels.tolist(), p.parent, p.kind) for p in s.proposals]
    return found


def test_without_its_pieces_it_is_the_literal_tracker(federation):
    bare = AdaptiveMultiHypothesis(max_hypotheses=3, adapt=False, near_copies=None, proposals=())
    ours, literal = (federation(t).run(4).state for t in (bare, MultiHypothesis(3)))
    assert numbers(ours) == numbers(literal)


def test_one_hypothesis_without_proposals_is_the_greedy_tracker(federation):
    alone = AdaptiveMultiHypothesis(max_hypotheses=1, proposals=())
    ours, greedy = (federation(t).run(4).state for t in (alone, Greedy()))
    assert numbers(ours) == numbers(greedy)


def test_as_many_are_kept_as_the_weights_say_there_are(federation):
    """Replayed on the literal tracker, whose first round has the same M candidates."""
    every = federation(MultiHypothesis(8)).run(1).hypotheses.weights
    expected = math.ceil(1 / (every**2).sum())
    assert 1 < expected < 8
    adaptive = AdaptiveMultiHypothesis(max_hypotheses=8, near_copies=None, proposals=())
    kept = federation(adaptive).run(1).hypotheses
    assert len(kept) == expected
    assert kept.weights.tolist() == pytest.approx(
        (every[:expected] / every[:expected].sum()).tolist()
    )


@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
def test_proposals_hold_no_weight_and_serve_no_client(federation, memory):
    without, with_ = (
        federation(AdaptiveMultiHypothesis(max_hypotheses=3, proposals=p), memory=memory).run(2)
        for p in ((), (SPLIT,))
    )
    assert with_.hypotheses.proposals
    assert not without.hypotheses.proposals
    assert with_.hypotheses.weights.sum() == pytest.approx(1)
    assert with_.hypotheses.log_weights.tolist() == without.hypotheses.log_weights.tolist()
    assert with_.association_probabilities().tolist() == (
        without.association_probabilities().tolist()
    )
    for one, other in zip(with_.records, without.records, strict=True):
        assert one.ledger.trainings_requested == other.ledger.trainings_requested
        assert one.evaluations.keys() == other.evaluations.keys()
        for client, sums in one.evaluations.items():
            assert sums.nll == other.evaluations[client].nll
            assert sums.confusion.tolist() == other.evaluations[client].confusion.tolist()
    inputs = np.ones((2, 3), dtype=np.float32)
    assert with_.predict("c0", inputs).mean.tolist() == without.predict("c0", inputs).mean.tolist()


@pytest.mark.parametrize("memory", ["replace", "forget", "accumulate"])
def test_a_proposal_has_the_weight_of_what_it_was_made_from(federation, memory):
    tracker = AdaptiveMultiHypothesis(max_hypotheses=3, near_copies=None, proposals=(SPLIT,))
    hypotheses = federation(tracker, memory=memory).run(2).hypotheses
    assert hypotheses.proposals
    for proposed in hypotheses.proposals:
        assert proposed.log_weight == pytest.approx(hypotheses.log_weights[0])


@dataclass(frozen=True)
class Keeping(PolicyWrapper):
    """A policy that carries a model with each association."""

    policy: LikelihoodAssociation

    def associate(self, hypothesis, context):
        ranking = yield from self.policy.associate(hypothesis, context)
        kept = {"first": hypothesis.carried_models.get("first", hypothesis.clusters[0])}
        return replace(ranking, candidates=(replace(one, carried_models=kept) for one in ranking))


def test_proposals_keep_the_models_that_a_policy_carries(federation):
    tracker = AdaptiveMultiHypothesis(max_hypotheses=3, proposals=(SPLIT,))
    competing = federation(tracker, wrap=Keeping).run(2).hypotheses.competing
    assert any(one.kind == "split" for one in competing)
    assert len({one.carried_models["first"].key for one in competing}) == 1


def test_proposals_compete_in_the_next_round(federation):
    """A split of two hidden groups that share a cluster wins; it hangs from the proposal."""
    tracker = AdaptiveMultiHypothesis(max_hypotheses=4, proposals=(SPLIT,))
    found = False
    for seed in range(12):
        run = federation(tracker, seed=seed).run(6)
        for before, after in zip(run.state.history, run.state.history[1:], strict=False):
            kept = len(before.associations)
            assert all(p < kept + len(before.proposals) for row in after.parents for p in row)
            found |= any(p >= kept for row in after.parents for p in row)
            assert after.round % 2 == 0 or not after.proposals
    assert found


def test_proposals_are_in_the_snapshot_and_in_the_tree(federation):
    run = federation(AdaptiveMultiHypothesis(max_hypotheses=4, proposals=(SPLIT,)), seed=1).run(4)
    tree = hypothesis_tree(run.state.history)
    for before, snapshot in zip((None, *run.state.history), run.state.history, strict=False):
        for rank, proposed in enumerate(snapshot.proposals):
            node = tree.nodes[f"r{snapshot.round}p{rank}"]
            assert (node["kind"], node["weight"], node["rank"]) == ("split", 0.0, rank)
            assert node["sizes"] == " ".join(map(str, proposed.association.sizes))
            kept = len(before.associations)
            position = proposed.parent
            name = f"h{position}" if position < kept else f"p{position - kept}"
            assert list(tree.predecessors(f"r{snapshot.round}p{rank}")) == [
                f"r{snapshot.round - 1}{name}"
            ]
        for rank, parents in enumerate(snapshot.parents):
            hangs = set(tree.predecessors(f"r{snapshot.round}h{rank}"))
            if before is None:
                assert hangs == {f"r0h{p}" for p in parents}
                continue
            kept = len(before.associations)
            assert hangs == {
                f"r{before.round}h{p}" if p < kept else f"r{before.round}p{p - kept}"
                for p in parents
            }
    assert len(tree) == 1 + sum(len(s.associations) + len(s.proposals) for s in run.state.history)


@pytest.mark.parametrize("memory", ["replace", "accumulate"])
@pytest.mark.parametrize("judge", ["training", "held_out"])
def test_going_on_from_a_checkpoint_with_proposals_pending(federation, tmp_path, judge, memory):
    def of():
        tracker = AdaptiveMultiHypothesis(max_hypotheses=4, **EVERYTHING)
        return federation(tracker, judge=judge, memory=memory, starts=2, client_fraction=0.75)

    whole = of().run(7).state
    half = of().run(2).state
    assert half.hypotheses.proposals
    back = load(save(half, tmp_path))
    assert numbers(back) == numbers(half)
    assert numbers(of().run(7, state=back).state) == numbers(whole)


def test_every_piece_together_is_lawful(federation):
    for seed in range(4):
        tracker = AdaptiveMultiHypothesis(max_hypotheses=4, **EVERYTHING)
        run = federation(
            tracker, judge="held_out", starts=3, seed=seed, client_fraction=0.75, drop_out=0.2
        ).run(8)
        for snapshot in run.state.history:
            assert np.exp(snapshot.log_weights).sum() == pytest.approx(1)
            assert snapshot.log_captured_mass <= 0
            assert len(snapshot.associations) <= 4 + 3
            for association in snapshot.associations:
                assert association.num_clusters <= 4
        for one in run.hypotheses.competing:
            assert len(one.clusters) == one.association.num_clusters
            assert len(one.lineage) == run.state.round
            assert all(torch.isfinite(p.blocks[0].gaussian.mean).all() for p in one.clusters)
        assert run.association_probabilities().sum() == pytest.approx(
            (run.hypotheses.best.association.labels >= 0).sum()
        )


def test_n_scan_leaves_one_ancestor(federation):
    depth = 2
    tracker = AdaptiveMultiHypothesis(
        max_hypotheses=6, adapt=False, near_copies=None, n_scan=NScan(depth), proposals=(SPLIT,)
    )
    plain = replace(tracker, n_scan=None)
    pruned, free = (federation(t, starts=3).run(4).state for t in (tracker, plain))
    assert len({h.lineage[-depth] for h in pruned.hypotheses.competing}) == 1
    assert len({h.lineage[-depth] for h in free.hypotheses}) > 1
    assert all(
        p.log_captured_mass <= f.log_captured_mass + 1e-9
        for p, f in zip(pruned.history[:depth], free.history[:depth], strict=True)
    )


def test_less_than_one_hypothesis_is_refused():
    with pytest.raises(
        ValueError, match="max_hypotheses must be a whole number of at least 1, got 0"
    ):
        AdaptiveMultiHypothesis(max_hypotheses=0)


@pytest.mark.parametrize("seed", range(3))
def test_successors_that_cannot_count_are_not_looked_at(federation, monkeypatch, seed):
    """The same hypotheses and captured mass as with all of them, of fewer associations."""
    seen, ranked = [], ranking.assignment.iter_assignments

    def counted(*arguments, **options):
        for one in ranked(*arguments, **options):
            seen.append(one)
            yield one

    monkeypatch.setattr(ranking.assignment, "iter_assignments", counted)
    states, counts = [], []
    for nats in (adaptive.NEGLIGIBLE, float("inf")):
        monkeypatch.setattr(adaptive, "NEGLIGIBLE", nats)
        seen.clear()
        sharp = federation(AdaptiveMultiHypothesis(max_hypotheses=8), seed=seed, temperature=0.01)
        states.append(sharp.run(5).state)
        counts.append(len(seen))
    for few, every in zip(*(state.history for state in states), strict=True):
        assert few.log_weights.tolist() == every.log_weights.tolist()
        assert few.log_captured_mass == every.log_captured_mass
        assert [a.labels.tolist() for a in few.associations] == [
            a.labels.tolist() for a in every.associations
        ]
    assert counts[0] < counts[1]
