import numpy as np
import pytest

from bcfl.policies.faacl.mutual_merge import Clustering, indices_after_merging, merge_mutual
from bcfl.policies.faacl.support import Support


def clustering(supports, partitions=None):
    """One device per cluster, named by a letter; every p-value tells its pair."""
    count = len(supports)
    p_values = {(i, j): 0.01 * i + 0.001 * j for i, row in enumerate(supports) for j in row}
    return Clustering(
        tuple(("abcdefgh"[i],) for i in range(count)),
        tuple(range(count)),
        tuple(partitions or (0,) * count),
        Support(p_values),
    )


def merged(supports, supporters="intersection", seed=0):
    return merge_mutual(clustering(supports), np.random.default_rng(seed), supporters)


def test_a_cluster_merges_once_so_that_devices_stay_partitioned():
    """Algorithm 3 as printed gives {0,1} and {0,2}, which share device 0."""
    after = merged([{1, 2, 3}, {0, 2}, {0, 1}, set()])
    assert after.members == (("a", "b"), ("c",), ("d",))
    assert after.sources[1:] == (2, 3)
    assert after.partitions == (0, 0, 0)


def test_the_merged_cluster_keeps_supporters_that_both_parents_had():
    after = merged([{1, 2, 3}, {0, 2}, {0, 1}, {0}])
    assert after.support.supporters(0) == [1]  # c supported a and b, d only a
    assert after.support.supporters(1) == [0]  # c was supported by a and b
    assert after.support.supporters(2) == [0]  # d by a alone
    assert after.support.p_values[(0, 1)] == pytest.approx(0.012)  # the larger of 0.002 and 0.012


def test_the_program_forgets_supporters_after_a_merge():
    after = merged([{1, 2, 3}, {0, 2}, {0, 1, 3}, {0}], "empty")
    assert after.support.p_values.keys() == {(1, 2)}


def test_both_parents_have_the_place_of_their_child():
    assert indices_after_merging(clustering([{3, 1}, {2}, {1, 0}, {0, 1}])) == (0, 1, 1, 0)
    assert indices_after_merging(clustering([{1}, {0}, set()])) == (0, 0, 1)


def test_two_couples_are_renumbered_together():
    after = merged([{3, 1}, {2}, {1, 0}, {0, 1}])
    assert after.members == (("a", "d"), ("b", "c"))
    assert after.support.p_values.keys() == {(0, 1)}  # b supported a and d; a supported c alone


def test_the_model_of_either_parent_goes_on():
    sources = {merged([{1}, {0}], seed=seed).sources for seed in range(20)}
    assert sources == {(0,), (1,)}


def test_one_sided_support_merges_no_clusters():
    before = clustering([{1, 2}, set(), {1}])
    after = merge_mutual(before, np.random.default_rng(0))
    assert after == before
    assert after.same_as(before)


def test_a_newcomer_is_a_cluster_of_its_own():
    after = clustering([set(), set()]).joined_by("z", 0)
    assert (after.members[-1], after.sources[-1], after.partitions) == (("z",), -1, (0, 0, 0))
    assert after.labels == {"a": 0, "b": 1, "z": 2}


def test_clusters_of_different_partitions_do_not_merge():
    """A cluster without devices keeps its support, and is in a partition of its own."""
    mutual = Support({(0, 1): 0.01, (1, 0): 0.02})
    before = Clustering((("a",), ()), (0, 1), (0, 1), mutual)
    after = merge_mutual(before, np.random.default_rng(0))
    assert (after.members, after.support) == (before.members, mutual)
