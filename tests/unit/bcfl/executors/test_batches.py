from collections import Counter

import pytest
import torch

from bcfl.executors.batches import slices, subset, training_batches


@pytest.mark.parametrize(
    ("samples", "size", "steps"),
    [(10, 3, 1), (10, 3, 10), (7, 7, 4), (5, 32, 6), (1, 8, 3), (64, 1, 50), (33, 32, 10)],
)
def test_each_sample_is_used_equally_often_to_within_one(samples, size, steps):
    batches = training_batches(samples, size, steps, 0, 0, "a")
    assert batches.shape == (steps, min(size, samples))
    used = Counter(batches.flatten().tolist())
    counts = [used[index] for index in range(samples)]
    assert sum(counts) == sum(used.values())
    assert max(counts) - min(counts) <= 1


def test_a_pass_is_finished_before_the_next_begins():
    stream = training_batches(10, 4, 5, 1, 2, "a").flatten().tolist()
    assert sorted(stream[:10]) == sorted(stream[10:]) == list(range(10))
    assert stream[:10] != stream[10:]


def test_batches_depend_on_seed_round_and_client_alone():
    first = training_batches(50, 8, 5, 1, 2, "a")
    torch.manual_seed(3)
    assert torch.equal(first, training_batches(50, 8, 5, 1, 2, "a"))
    for when in ((0, 2, "a"), (1, 3, "a"), (1, 2, "b")):
        assert not torch.equal(first, training_batches(50, 8, 5, *when))


def test_more_steps_only_append():
    assert torch.equal(
        training_batches(50, 8, 9, 1, 2, "a")[:5], training_batches(50, 8, 5, 1, 2, "a")
    )


def test_a_subset_is_distinct_sorted_and_of_the_asked_size():
    chosen = subset(100, 30, 0, 0, "a", "score")
    assert len(set(chosen.tolist())) == 30
    assert chosen.tolist() == sorted(chosen.tolist())
    assert not torch.equal(chosen, subset(100, 30, 0, 0, "a", "curvature"))


@pytest.mark.parametrize("limit", [None, 10, 11])
def test_no_subset_is_drawn_where_all_fit(limit):
    assert subset(10, limit, 0, 0, "a", "score") is None


def test_every_sample_is_in_a_subset_with_equal_probability():
    drawn = Counter(
        index for round in range(2000) for index in subset(10, 3, 0, round, "a", "x").tolist()
    )
    assert all(abs(drawn[index] - 600) < 5 * (2000 * 0.3 * 0.7) ** 0.5 for index in range(10))


def test_slices_cover_everything_once():
    assert [(s.start, s.stop) for s in slices(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert list(slices(0, 4)) == []
