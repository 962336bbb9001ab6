import numpy as np
import pytest

from bcfl import Association

NAMES = ("a", "b", "c")


def hard(*labels, clusters=2):
    return Association(NAMES, np.array(labels), clusters)


def test_hard_labels_serve_one_cluster_each():
    association = hard(1, -1, 0)
    assert association.serving.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert association.sizes.tolist() == [1, 1]
    assert (association.label("a"), association.label("b")) == (1, -1)
    assert association.by_client == {"a": 1, "c": 0}


def test_at_first_no_client_is_associated():
    association = Association.unseen(NAMES, 4)
    assert association.labels.tolist() == [-1, -1, -1]
    assert association.serving.tolist() == [[0] * 4] * 3
    assert association.sizes.tolist() == [0] * 4


def test_an_update_moves_some_and_leaves_the_others():
    before = hard(1, -1, 0)
    after = before.updated({"c": 1, "b": 0})
    assert after.labels.tolist() == [1, 0, 1]
    assert before.labels.tolist() == [1, -1, 0]
    assert before.updated({}).labels.tolist() == [1, -1, 0]


def test_an_update_of_a_soft_association_makes_rows_hard():
    soft = Association(NAMES, np.array([0, 1, -1]), 2, np.array([[0.6, 0.4], [0.1, 0.9], [0, 0]]))
    after = soft.updated({"c": 0, "a": 1})
    assert after.serving.tolist() == [[0, 1], [0.1, 0.9], [1, 0]]
    assert after.labels.tolist() == [1, 1, 0]
    assert soft.serving[0].tolist() == [0.6, 0.4]


def test_a_mixture_is_the_weighted_mean():
    mixed = Association.mixture([hard(0, 1, -1), hard(1, 1, -1)], np.array([0.25, 0.75]))
    assert mixed.serving.tolist() == [[0.25, 0.75], [0, 1], [0, 0]]
    assert mixed.labels.tolist() == [1, 1, -1]


def test_a_mixture_of_one_is_that_one_and_of_equals_is_hard():
    only = hard(0, 1, -1)
    assert Association.mixture([only], np.ones(1)) is only
    same = Association.mixture([only, hard(0, 1, -1)], np.array([0.3, 0.7]))
    assert same.probabilities is None
    assert same.labels.tolist() == [0, 1, -1]


@pytest.fixture
def either():
    """a and b are together, in cluster 0 or in 1, and c is in the other."""
    return Association.mixture([hard(0, 0, 1), hard(1, 1, 0)], np.array([0.25, 0.75]))


def together(association):
    return sum(w * one.serving @ one.serving.T for w, one in association.components)


def test_a_mixture_knows_which_clients_move_together(either):
    assert either.serving.tolist() == [[0.25, 0.75], [0.25, 0.75], [0.75, 0.25]]
    assert together(either).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    twice = Association.mixture([either, hard(0, 1, 1), hard(1, 1, 0)], np.array([0.5, 0.25, 0.25]))
    assert together(twice).tolist() == [[1, 0.75, 0], [0.75, 1, 0.25], [0, 0.25, 1]]
    assert [weight for weight, _ in twice.components] == [0.625, 0.25, 0.125]


def test_components_follow_updates(either):
    moved = either.updated({"c": 1})
    assert together(moved).tolist() == [[1, 1, 0.75], [1, 1, 0.75], [0.75, 0.75, 1]]
    assert either.updated({"a": 0, "b": 1, "c": 1}).mixed == ()
    assert either.updated({"a": 0, "b": 1}).updated({"c": 0}).mixed == ()


def test_components_follow_labels_and_clusters(either):
    for other in (
        either.relabelled(np.array([1, 0])),
        either.with_empty_cluster(),
        either.with_empty_cluster().without_cluster(2),
    ):
        assert together(other).tolist() == together(either).tolist()
    three = Association.mixture(
        [hard(0, 0, 1, clusters=3), hard(2, 0, 1, clusters=3)], [0.75, 0.25]
    )
    assert three.without_cluster(2).serving.tolist() == [[1, 0], [1, 0], [0, 1]]
    assert together(three.without_cluster(2)).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_labels_and_clients_must_fit():
    with pytest.raises(ValueError, match="2 labels do not fit 3 clients"):
        hard(0, 1)


@pytest.mark.parametrize("labels", [(0, 1, 2), (0, -2, 1)])
def test_labels_out_of_range_are_refused(labels):
    with pytest.raises(ValueError, match="labels must lie between -1 and 1"):
        hard(*labels)


def test_associations_cannot_be_changed():
    soft = Association(NAMES, np.array([0, 1, 1]), 2, np.array([[0.6, 0.4], [0.1, 0.9], [0, 1]]))
    for array in (soft.labels, soft.serving, hard(0, 1, 1).labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_an_association_says_what_it_is():
    assert repr(hard(1, -1, 1)) == "Association(3 clients, cluster sizes 0 2)"
