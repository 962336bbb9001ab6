import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Aggregation, Association
from bcfl.architecture.model import BlockSpec
from bcfl.hypotheses.posterior import from_initial
from bcfl.trackers.near_copies import NearCopies, squared_distances

FAR = [(0.0, 0.0), (10.0, 0.0)]
"""Two clusters whose squared distance, and so the spread, is 100."""


@pytest.fixture
def merged(linear):
    def of(*hypotheses, threshold=0.05):
        return NearCopies(threshold).merge(hypotheses, Aggregation(), linear)

    return of


def means(hypothesis, model):
    return [posterior.mean(model)[:2].tolist() for posterior in hypothesis.clusters]


def test_relabelled_copies_merge_under_the_numbers_of_the_heavier(hypothesis_at, merged, linear):
    light = hypothesis_at("x", [(10.5, 0), (0, 0.5)], [1, 1, 0, -1], 0.2, parents=(4,))
    heavy = hypothesis_at("y", FAR, [0, 0, 0, -1], 0.6, parents=(1,), lineage=(3, 1))
    (one,) = merged(light, heavy)
    assert means(one, linear) == [pytest.approx([0, 0.125]), pytest.approx([10.125, 0])]
    assert one.association.labels.tolist() == [0, 0, 0, -1]
    expected = [[1, 0], [1, 0], [0.75, 0.25], [0, 0]]
    assert one.association.serving.tolist() == [pytest.approx(row) for row in expected]
    assert one.log_weight == pytest.approx(math.log(0.8))
    assert one.parents == (1, 4)
    assert one.lineage == (3, 1)


def test_the_spread_within_and_between_copies_is_the_new_variance(hypothesis_at, merged):
    """Variance of equal parts N(0, 1) and N(1, 1) is 1 + 1/4, that of equal means is 1."""
    (one,) = merged(
        hypothesis_at("x", FAR, [0, 1], 0.5), hypothesis_at("y", [(1, 0), (10, 0)], [0, 1], 0.5)
    )
    near, far = (p.blocks[0].gaussian for p in one.clusters)
    assert (1 / near.precision)[:2].tolist() == pytest.approx([1.25, 1.0])
    assert (1 / far.precision)[:2].tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(("distance", "count"), [(2.2360, 1), (2.2361, 2)])
def test_one_pair_that_is_too_far_is_enough(hypothesis_at, merged, distance, count):
    """5 % of the spread, 100, is a squared distance of 5."""
    one = hypothesis_at("x", FAR, [0, 1], 0.6)
    other = hypothesis_at("y", [(0, 0), (10, distance)], [0, 1], 0.4)
    assert len(merged(one, other)) == count


def test_the_threshold_scales_with_the_spread_of_the_heavier(hypothesis_at, merged):
    narrow, wide = [(0, 0), (1, 0)], [(0, 0), (3, 0)]
    for weight, count in ((0.1, 2), (0.9, 1)):
        one = hypothesis_at("x", narrow, [0, 1], 1 - weight)
        other = hypothesis_at("y", wide, [0, 1], weight)
        assert len(merged(one, other, threshold=0.5)) == count


def test_copies_are_compared_with_the_heaviest_alone(hypothesis_at, merged, linear):
    """Each is near the next, the last is not near the first."""
    chain = [
        hypothesis_at(str(i), [(0, 0), (10, 1.5 * i)], [0, 1], w)
        for i, w in enumerate((0.5, 0.3, 0.2))
    ]
    first, second = merged(*chain)
    assert means(first, linear)[1] == pytest.approx([10, 1.5 * 0.3 / 0.8])
    assert second is chain[2]
    middle_heaviest = [
        hypothesis_at(str(i), [(0, 0), (10, 1.5 * i)], [0, 1], w)
        for i, w in enumerate((0.3, 0.5, 0.2))
    ]
    assert len(merged(*middle_heaviest)) == 1


def test_another_number_of_clusters_is_another_hypothesis(hypothesis_at, merged):
    two = hypothesis_at("x", FAR, [0, 1], 0.5)
    three = hypothesis_at("y", [*FAR, (10, 0)], [0, 1], 0.3)
    one = hypothesis_at("z", FAR[:1], [0, 0], 0.2)
    assert merged(two, three, one, threshold=1e9) == [two, three, one]


def test_shared_models_stay_the_objects_that_they_are(hypothesis_at, merged):
    one = hypothesis_at("x", FAR, [0, 1], 0.6)
    other = hypothesis_at("x", FAR, [0, 0], 0.4)
    (both,) = merged(one, other, threshold=0.0)
    assert all(p is q for p, q in zip(both.clusters, one.clusters, strict=True))
    assert both.association.serving.tolist() == [pytest.approx([1, 0]), pytest.approx([0.4, 0.6])]


def test_blocks_that_all_clusters_share_do_not_keep_copies_apart(linear):
    """Clusters differ in their biases alone; the copies' shared weights are far apart."""
    blocks = (
        BlockSpec("shared", "global", ("0.weight",)),
        BlockSpec("own", "cluster", ("0.bias",)),
    )
    divided = replace(linear, blocks=blocks)

    def apart(model):
        far = [birth_at(model, f"{i}{x}", x, i) for x in (0.0, 9.0) for i in (0.0, 1.0)]
        return squared_distances(far[:2], far[2:], model).tolist()

    assert apart(linear) == [[81, 82], [82, 81]]
    assert apart(divided) == [[0, 1], [1, 0]]


def birth_at(model, key, weight, bias):
    mean = torch.zeros(8, dtype=torch.float64)
    mean[0], mean[7] = weight, bias
    return from_initial(model, key, mean, torch.empty(0), 1.0)


def test_a_single_cluster_has_no_spread_and_merges_with_itself_alone(hypothesis_at, merged):
    one, same = (hypothesis_at("x", [(0, 0)], [0], w) for w in (0.5, 0.3))
    near = hypothesis_at("y", [(0, 1e-6)], [0], 0.2)
    assert [h.log_weight for h in merged(near, one, same)] == pytest.approx(
        [math.log(0.8), math.log(0.2)]
    )


def test_relabelled_soft_associations_keep_who_is_served_by_what(hypothesis_at, merged):
    soft = Association(("a",), np.array([1]), 2, np.array([[0.3, 0.7]]))
    heavy = hypothesis_at("x", FAR, [0], 0.5)
    light = hypothesis_at("y", FAR[::-1], [0], 0.5)
    light = replace(light, association=soft)
    (one,) = merged(heavy, light)
    assert one.association.serving.tolist() == [pytest.approx([0.5 + 0.35, 0.15])]


@pytest.mark.parametrize("threshold", [-0.1, float("nan")])
def test_a_threshold_below_zero_is_refused(threshold):
    with pytest.raises(ValueError, match="threshold must be at least 0, got"):
        NearCopies(threshold)
