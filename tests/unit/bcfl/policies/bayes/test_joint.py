import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import Association, BlockSpec, Hypothesis, Model, Objective
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies import Ranking, candidate
from bcfl.policies.bayes.joint import JointEvidence, losses_of, reweighed
from bcfl.protocol.statistics.evidence import EvidenceSum
from posteriors import DiagonalGaussian

NAMES = ("a", "b", "c")
LAYERS = {"zero": ("0.",), "weight": ("2.weight",), "bias": ("2.bias",)}


def two_layers():
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))


def model(*names):
    """The network with its parameters in the given blocks, in that order; in one without."""
    blocks = tuple(BlockSpec(name, "cluster", LAYERS[name]) for name in names)
    return Model(
        name="net",
        build=two_layers,
        input_shape=(2,),
        num_outputs=2,
        **({"blocks": blocks} if blocks else {}),
    )


def posterior(of, key, mean, precision):
    """The same Gaussian whatever the blocks, the likelihood's precision being twice the prior's."""
    empty = torch.empty(0)
    means, precisions = of.split(mean, empty), of.split(precision, empty)
    blocks = []
    for name in means:
        prior = DiagonalGaussian(means[name][0], precisions[name][0])
        sharp = DiagonalGaussian(prior.mean, 3 * prior.precision)
        blocks.append(
            Block(
                key=f"{key} {name}",
                name=name,
                gaussian=sharp,
                base=prior,
                prior=prior,
                buffers=empty,
            )
        )
    return Posterior(tuple(blocks))


@pytest.fixture
def numbers():
    """Means and precisions of two clusters, and per client and cluster an expansion."""
    random = np.random.default_rng(0)
    size = model().layout.num_parameters
    means, precisions = (
        torch.from_numpy(random.normal(size=(2, size))),
        torch.from_numpy(random.uniform(0.2, 4.0, size=(2, size))),
    )
    expansions = {
        name: [
            EvidenceSum(
                -float(random.uniform(3, 9)),
                torch.from_numpy(random.normal(size=size)),
                torch.from_numpy(random.uniform(0, 3, size=size)),
                5,
            )
            for _ in range(2)
        ]
        for name in NAMES
    }
    return means, precisions, expansions


def problem(of, numbers):
    """Parent hypothesis and scores under a choice of blocks."""
    means, precisions, expansions = numbers
    clusters = tuple(posterior(of, f"k{i}", means[i], precisions[i]) for i in range(2))
    parent = Hypothesis(clusters=clusters, association=Association.unseen(NAMES, 2))
    scores = {
        name: {p.key: e for p, e in zip(clusters, rows, strict=True)}
        for name, rows in expansions.items()
    }
    return parent, scores


def log_evidence(numbers, labels, temperature):
    """Log of the integral of exp(quadratic) under the prior, by dense determinants."""
    _, precisions, expansions = numbers
    total = 0.0
    for cluster in range(2):
        members = [
            expansions[n][cluster] for n, i in zip(NAMES, labels, strict=True) if i == cluster
        ]
        if not members:
            continue
        prior = np.diag(precisions[cluster].numpy())
        bend = np.diag(sum(e.curvature.numpy() for e in members)) / temperature
        slope = sum(e.gradient.numpy() for e in members) / temperature
        posterior_precision = prior + bend
        total += sum(e.log_likelihood for e in members) / temperature
        total += 0.5 * slope @ np.linalg.solve(posterior_precision, slope)
        total += 0.5 * np.linalg.slogdet(prior)[1] - 0.5 * np.linalg.slogdet(posterior_precision)[1]
    return total


ORDERS = [(), *itertools.permutations(LAYERS)]


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("names", ORDERS, ids="-".join)
def test_blocks_in_any_order_give_the_evidence_of_one(numbers, names, temperature):
    of = model(*names)
    parent, scores = problem(of, numbers)
    evidence = JointEvidence(parent, of, temperature)
    for labels in itertools.product(range(2), repeat=3):
        chosen = candidate(parent, dict(zip(NAMES, labels, strict=True)), Objective())
        expected = log_evidence(numbers, labels, temperature)
        found = evidence.log_weight(chosen, scores) + float(evidence.reference(scores))
        assert found == pytest.approx(expected, rel=1e-10)


def test_the_prior_counts_and_not_the_posterior(numbers):
    of = model()
    parent, scores = problem(of, numbers)
    chosen = candidate(parent, dict.fromkeys(NAMES, 1), Objective())
    sharper = tuple(
        Posterior(tuple(replace(b, prior=b.gaussian) for b in p.blocks)) for p in parent.clusters
    )
    other = replace(parent, clusters=sharper)
    one, two = (JointEvidence(h, of, 1.0).log_weight(chosen, scores) for h in (parent, other))
    assert one != pytest.approx(two, rel=1e-3)


def ranking_of(parent, numbers):
    """All associations, best first by the separable weights alone."""
    expansions = numbers[2]
    made = []
    for labels in itertools.product(range(2), repeat=3):
        weight = sum(expansions[n][i].log_likelihood for n, i in zip(NAMES, labels, strict=True))
        chosen = dict(zip(NAMES, labels, strict=True))
        made.append(candidate(parent, chosen, Objective(), log_weight=weight))
    return Ranking(sorted(made, key=lambda c: -c.log_weight))


def test_all_associations_weighed_again_come_in_their_new_order(numbers):
    of = model()
    parent, scores = problem(of, numbers)
    log_prior = np.log([[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]])
    evidence = JointEvidence(parent, of, 1.0)
    found = reweighed(ranking_of(parent, numbers), None, scores, log_prior, evidence)
    expected = {
        labels: log_evidence(numbers, labels, 1.0) + log_prior[range(3), labels].sum()
        for labels in itertools.product(range(2), repeat=3)
    }
    reference = float(found.reference)
    weights = {tuple(c.association.labels): c.log_weight + reference for c in found}
    assert list(weights) == sorted(expected, key=lambda labels: -expected[labels])
    assert weights == {k: pytest.approx(v) for k, v in expected.items()}
    total = np.log(np.exp(list(expected.values())).sum())
    assert found.log_total + reference == pytest.approx(total)


@pytest.mark.parametrize("offset", [1e9, 1e15])
def test_a_constant_of_one_client_changes_no_difference(numbers, offset):
    """Added where it is exact: to log-likelihoods rounded as the addition rounds them."""
    of = model()
    means, precisions, expansions = numbers
    at = next(iter(expansions))

    def moved(rows, by):
        return [replace(e, log_likelihood=e.log_likelihood + offset - by) for e in rows]

    found = []
    for by in (0.0, offset):
        changed = {**expansions, at: moved(expansions[at], by)}
        parent, scores = problem(of, (means, precisions, changed))
        evidence = JointEvidence(parent, of, 3.0)
        ranking = reweighed(ranking_of(parent, numbers), 8, scores, np.zeros((3, 2)), evidence)
        weights = {tuple(c.association.labels): c.log_weight for c in ranking}
        found.append((weights, ranking.log_total, ranking.reference))
    (shifted, total, high), (right, right_total, low) = found
    assert shifted == right
    assert total == right_total
    assert high - low == Fraction(offset) / 3


def test_of_the_first_few_the_total_is_unknown(numbers):
    of = model()
    parent, scores = problem(of, numbers)
    evidence = JointEvidence(parent, of, 1.0)
    separable = [tuple(c.association.labels) for c in ranking_of(parent, numbers)]
    found = reweighed(ranking_of(parent, numbers), 3, scores, np.zeros((3, 2)), evidence)
    assert {tuple(c.association.labels) for c in found} == set(separable[:3])
    assert np.isnan(found.log_total)
    whole = reweighed(ranking_of(parent, numbers), 9, scores, np.zeros((3, 2)), evidence)
    assert np.isfinite(whole.log_total)


def test_losses_are_the_negative_log_likelihoods(numbers):
    _, scores = problem(model(), numbers)
    for name, row in losses_of(scores).items():
        for key, one in row.items():
            assert (one.total, one.standard_error) == (-scores[name][key].log_likelihood, 0.0)
