from dataclasses import replace

import numpy as np
import pytest

from bcfl import Association, Hypothesis, HypothesisSet
from bcfl.hypotheses.hypothesis import match_clusters
from bcfl.hypotheses.membership import Membership

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def hypothesis(linear, newborn):
    """A hypothesis of given labels over clusters that are born of given seeds."""

    def of(labels, weight=1.0, seeds=(0, 1), probabilities=None):
        clusters = tuple(newborn(linear, seed) for seed in seeds)
        association = Association(NAMES, np.array(labels), len(seeds), probabilities)
        return Hypothesis(
            clusters=clusters, association=association, log_weight=float(np.log(weight))
        )

    return of


def test_a_client_is_served_by_its_cluster_and_a_newcomer_by_all(hypothesis):
    soft = np.array([[0.2, 0.8], [1, 0], [0, 1], [0, 0]])
    one = hypothesis([1, 0, 1, -1], probabilities=soft)
    assert one.served_by("a").tolist() == [0.2, 0.8]
    assert one.served_by("d").tolist() == [0.5, 0.5]
    assert hypothesis([1, 0, 1, -1]).served_by("a").tolist() == [0, 1]


def test_weights_are_normalised_and_sorted(hypothesis):
    kept = HypothesisSet.weighted(
        [hypothesis([0, 0, 1, 1], 1.0), hypothesis([0, 1, 1, 1], 3.0)], 5, -0.5
    )
    assert kept.weights.tolist() == pytest.approx([0.75, 0.25])
    assert kept.best.association.labels.tolist() == [0, 1, 1, 1]
    assert kept.effective_number == pytest.approx(1 / (0.75**2 + 0.25**2))
    assert (kept.round, kept.log_captured_mass, len(kept)) == (5, -0.5, 2)
    assert [h.association.labels[1] for h in kept] == [1, 0]
    assert repr(kept) == (
        "HypothesisSet(2 hypotheses, effective 1.6, distinct partitions 2, log captured mass -0.5, "
        "round 5)"
    )
    assert repr(replace(kept, log_captured_mass=float("nan"))) == (
        "HypothesisSet(2 hypotheses, effective 1.6, distinct partitions 2, round 5)"
    )
    assert repr(kept[0]) == "Hypothesis(weight 0.75, cluster sizes 1 3)"


def test_hypotheses_of_one_partition_are_counted_once(hypothesis):
    labels = [[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1], [0, 0, -1, 1]]
    kept = HypothesisSet.weighted([hypothesis(row) for row in labels], 1, 0.0)
    assert kept.num_partitions == 3
    assert kept[3].association.partition == (0, 0, -1, 1)


def test_equal_weights_keep_their_order_and_tiny_ones_their_ratio(hypothesis):
    parts = [replace(hypothesis([i, 0, 1, 1]), log_weight=w) for i, w in ((0, -1e4), (1, -1e4))]
    kept = HypothesisSet.weighted(parts, 1, 0.0)
    assert kept.weights.tolist() == pytest.approx([0.5, 0.5])
    assert kept.best.association.labels[0] == 0


def test_a_client_that_answered_for_some_hypotheses_is_mixed_over_these(hypothesis):
    kept = HypothesisSet.weighted(
        [
            hypothesis([0, 0, 1, -1], 0.6),
            hypothesis([0, 0, 1, 0], 0.3, seeds=(2, 3)),
            hypothesis([0, 1, 1, 1], 0.1, seeds=(4, 5)),
        ],
        1,
        0.0,
    )
    np.testing.assert_allclose(
        kept.association_probabilities(), [[1, 0], [0.9, 0.1], [0, 1], [0.75, 0.25]], atol=1e-12
    )
    together = [0.75, 1, 0.25]
    np.testing.assert_allclose(kept.co_association()[3], [*together, 1], atol=1e-12)
    assert kept.co_association()[0, 1] == pytest.approx(0.9)
    of_client = Membership.of_client(kept, "d")
    np.testing.assert_allclose(of_client.association, [0.75, 0.25], atol=1e-12)
    np.testing.assert_allclose(of_client.co_association[:3], together, atol=1e-12)
    newcomer = Membership(kept, tuple(w * np.array([1.0, 0.0]) for w in kept.weights))
    np.testing.assert_allclose(newcomer.co_association, [1, 0.9, 0, 0.75], atol=1e-12)


def test_a_client_seen_by_a_hypothesis_of_no_weight_alone_is_as_one_never_seen(hypothesis):
    parts = [hypothesis([0, 0, 1, -1], 1.0), hypothesis([0, 0, 1, 0], 1.0, seeds=(2, 3))]
    parts[1] = replace(parts[1], log_weight=-2000.0)
    kept = HypothesisSet.weighted(parts, 1, 0.0)
    np.testing.assert_allclose(Membership.of_client(kept, "d").association, [0.5, 0.5])
    assert kept.association_probabilities()[3].tolist() == [0, 0]
    assert kept.co_association()[3].tolist() == [0, 0, 0, 1]


def test_probabilities_are_summed_over_matched_clusters(hypothesis):
    """Labels mean nothing across hypotheses: the same partition under other names adds up."""
    kept = HypothesisSet.weighted(
        [
            hypothesis([0, 0, 1, -1], 0.6),
            hypothesis([1, 1, 0, -1], 0.3, seeds=(2, 3)),
            hypothesis([0, 1, 1, -1], 0.1, seeds=(4, 5)),
        ],
        1,
        0.0,
    )
    np.testing.assert_allclose(
        kept.association_probabilities(), [[1, 0], [0.9, 0.1], [0, 1], [0, 0]], atol=1e-12
    )


def test_shared_models_break_ties_of_matching(hypothesis):
    reference = hypothesis([0, 1, 0, 1], seeds=(0, 1))
    other = hypothesis([0, 0, 1, 1], seeds=(1, 0))
    assert match_clusters(reference, other).tolist() == [1, 0]


def test_shared_clients_matter_more_than_shared_models(hypothesis):
    reference = hypothesis([0, 0, 1, 1], seeds=(0, 1))
    other = hypothesis([0, 0, 1, 1], seeds=(1, 0))
    assert match_clusters(reference, other).tolist() == [0, 1]
