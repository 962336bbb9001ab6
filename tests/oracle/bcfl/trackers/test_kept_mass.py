"""What is kept and what is discarded in a round sum to the round's total, proposals included.

All associations of all that compete are enumerated by numpy.
"""

import itertools

import numpy as np
import pytest

from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.trackers import AdaptiveMultiHypothesis
from bcfl.trackers.near_copies import NearCopies
from bcfl.trackers.proposals import Birth, Death, SplitAndFree
from bcfl.trackers.survival import NScan

ROUNDS = 6
SPLIT = SplitAndFree(min_members=2, every=1)
OTHERS = (Birth(min_members=2, every=1, max_clusters=3), Death(every=1))


def log_sum(values):
    peak = max(values)
    return peak + np.log(np.exp(np.array(values) - peak).sum())


def carried(memory, log_weight):
    return {"accumulate": log_weight, "forget": 0.9 * log_weight, "replace": 0.0}[memory]


def all_masses(world, competing, round, memory, staying):
    """Log mass of every (parent, labels), with the parents' carried weights summing to one."""
    before = [carried(memory, h.log_weight) for h in competing]
    before = [w - log_sum(before) for w in before]
    masses = {}
    for parent, (start, hypothesis) in enumerate(zip(before, competing, strict=True)):
        means = [posterior.mean(world.model).numpy() for posterior in hypothesis.clusters]
        k = len(means)
        for labels in itertools.product(range(k), repeat=len(world.clients)):
            total = start
            for client, label in zip(world.clients, labels, strict=True):
                design, values = world.of(client, round)
                error = values - design @ means[label]
                total += -0.5 * error @ error - 0.5 * len(values) * np.log(2 * np.pi)
                old = hypothesis.association.label(client)
                if staying is None or old < 0 or k == 1:
                    total -= np.log(k)
                else:
                    total += np.log(staying if old == label else (1 - staying) / (k - 1))
            masses[parent, labels] = total
    return masses


def kept_by_hand(masses, most, per_parent, adapt):
    """The heaviest, at most so many of each parent, cut to the effective number."""
    families = {}
    for (parent, labels), mass in masses.items():
        families.setdefault(parent, []).append((mass, labels))
    looked_at = [
        (mass, parent, labels)
        for parent, family in families.items()
        for mass, labels in sorted(family, reverse=True)[:per_parent]
    ]
    best = sorted(looked_at, reverse=True)[:most]
    if adapt:
        weights = np.exp([mass - log_sum([m for m, _, _ in best]) for mass, _, _ in best])
        best = best[: int(np.ceil(1 / (weights**2).sum() - 1e-9))]
    return best


@pytest.mark.parametrize("staying", [None, 0.8])
@pytest.mark.parametrize("memory", ["accumulate", "forget", "replace"])
@pytest.mark.parametrize(
    ("adapt", "proposals"),
    [(True, (SPLIT,)), (False, (SPLIT,)), (False, (SPLIT, *OTHERS)), (True, ())],
    ids=["adaptive", "capped", "all moves", "no proposals"],
)
def test_kept_and_discarded_sum_to_the_total(linear_world, memory, staying, adapt, proposals):
    world = linear_world(3, clients=4, clusters=2, rounds=ROUNDS)
    tracker = AdaptiveMultiHypothesis(
        max_hypotheses=4, adapt=adapt, near_copies=None, proposals=proposals
    )
    prior = AssociationPrior(staying)
    states = world.run(world.method(tracker, memory=memory, prior=prior), ROUNDS)
    proposed = 0
    for round, (before, after) in enumerate(
        zip([world.start(), *states[:-1]], states, strict=True)
    ):
        competing = before.hypotheses.competing
        proposed += len(competing) - len(before.hypotheses)
        masses = all_masses(world, competing, round, memory, staying)
        kept = kept_by_hand(masses, 4, 4, adapt)
        total, held = log_sum(list(masses.values())), log_sum([mass for mass, _, _ in kept])
        share = after.hypotheses.log_captured_mass
        assert share == pytest.approx(held - total, abs=1e-9)
        weights = [mass - held for mass, _, _ in kept]
        assert after.hypotheses.log_weights.tolist() == pytest.approx(weights, abs=1e-9)
        found = {
            (h.parents[0], tuple(map(int, h.association.labels))): h.log_weight
            for h in after.hypotheses
        }
        assert len(found) == len(kept)
        for one, log_weight in found.items():
            assert log_weight == pytest.approx(masses[one] - held, abs=1e-9)
        lost = sum(np.exp(mass - total) for one, mass in masses.items() if one not in found)
        assert np.exp(share) + lost == pytest.approx(1)
        for one in after.hypotheses.proposals:
            assert one.parents == after.hypotheses.best.parents
            assert one.lineage == after.hypotheses.best.lineage
            assert one.log_weight == pytest.approx(weights[0], abs=1e-9)
    assert bool(proposed) == bool(proposals)


@pytest.mark.parametrize("memory", ["accumulate", "replace"])
def test_merging_keeps_the_mass_of_a_round(linear_world, memory):
    """The first round's candidates are the same with and without merging."""
    world = linear_world(4, clients=4, clusters=2, rounds=1)
    apart, merged = (
        world.run(
            world.method(
                AdaptiveMultiHypothesis(
                    max_hypotheses=8, adapt=False, near_copies=copies, proposals=(SPLIT,)
                ),
                memory=memory,
            ),
            1,
        )[-1].hypotheses
        for copies in (None, NearCopies(0.5))
    )
    assert len(merged) < len(apart) == 8
    assert merged.log_captured_mass == pytest.approx(apart.log_captured_mass, abs=1e-12)
    assert merged.weights.sum() == pytest.approx(1)
    assert [p.association.labels.tolist() for p in merged.proposals] == [
        p.association.labels.tolist() for p in apart.proposals
    ]


def test_what_n_scan_drops_is_discarded(linear_world):
    """Now and then the most probable hypothesis is of a family that weighs less in all.

    It makes no proposals then.
    """
    dropped = overruled = 0
    for seed in range(8):
        world = linear_world(seed, clients=3, clusters=2, rounds=4)
        tracker = AdaptiveMultiHypothesis(
            max_hypotheses=6, adapt=False, near_copies=None, proposals=(SPLIT,), n_scan=NScan(1)
        )
        before = world.start()
        for round, after in enumerate(world.run(world.method(tracker), 4)):
            masses = all_masses(world, before.hypotheses.competing, round, "accumulate", None)
            kept = kept_by_hand(masses, 6, 6, adapt=False)
            families = {}
            for mass, parent, _ in kept:
                families.setdefault(parent, []).append(mass)
            winner = max(families, key=lambda parent: log_sum(families[parent]))
            dropped += len(kept) - len(families[winner])
            held = log_sum(families[winner]) - log_sum(list(masses.values()))
            assert after.hypotheses.log_captured_mass == pytest.approx(held, abs=1e-9)
            assert len(after.hypotheses) == len(families[winner])
            assert {h.lineage[-1] for h in after.hypotheses.competing} == {winner}
            overruled += bool(after.hypotheses.proposals) and winner != kept[0][1]
            before = after
    assert dropped
    assert overruled
