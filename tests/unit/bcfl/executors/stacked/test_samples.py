import pytest
import torch

from bcfl.executors.stacked.samples import padded, padded_batches, padded_length


@pytest.mark.parametrize("count", [1, 8, 9, 31, 32, 33, 100, 1000, 2048])
def test_padding_is_little_and_depends_on_the_count_alone(count):
    length = padded_length(count)
    assert count <= length <= max(count * 1.25, count + 7)
    rows = padded(torch.arange(count), length)
    assert rows[:count].tolist() == list(range(count))
    assert not rows[count:].any()


def test_lengths_are_few():
    assert len({padded_length(count) for count in range(1, 2049)}) <= 30


def batches_of(counts, memory, **options):
    rows = {name: 100 + torch.arange(count) for name, count in counts.items()}
    return list(
        padded_batches(counts, rows.__getitem__, lambda length: 10 * length, memory, **options)
    )


def test_batches_share_key_and_length_and_fit_in_memory():
    counts = {"a": 3, "B": 3, "b": 20, "c": 7, "d": 8, "e": 5}
    batches = batches_of(counts, 160, key=str.isupper)
    assert [batch.items for batch in batches] == [["a", "c"], ["d", "e"], ["B"], ["b"]]
    for batch in batches:
        assert len(batch.rows) == 1 or 10 * batch.rows.numel() <= 160
        for name, rows, mask in zip(batch.items, batch.rows, batch.mask, strict=True):
            assert rows[mask].tolist() == list(range(100, 100 + counts[name]))
            assert (rows[~mask] == 100).all()


def test_lengths_may_be_exact_and_rows_of_several_steps():
    rows = torch.arange(6).view(2, 3)
    (batch,) = padded_batches("ab", lambda _: rows, int, 10**6, length_of=int)
    assert batch.rows.tolist() == [rows.tolist()] * 2
    assert batch.mask.all()


def test_slices_hold_every_sample_once():
    (batch,) = batches_of({"a": 20}, 10**6)
    parts = list(batch.slices(8, torch.device("cpu")))
    assert [mask.shape for _, mask in parts] == [(1, 8)] * 3
    rows = torch.cat([rows[mask] for rows, mask in parts])
    assert rows.tolist() == list(range(100, 120))
