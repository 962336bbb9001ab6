import pytest

from bcfl.executors.config import bytes_named
from bcfl.executors.memory import chunks


@pytest.mark.parametrize(
    ("text", "number"),
    [("2GB", 2 * 10**9), ("512 MiB", 2**29), ("1.5kb", 1500), ("800", 800), ("1e6", 10**6)],
)
def test_sizes_in_words(text, number):
    assert bytes_named(text) == number


@pytest.mark.parametrize("text", ["", "lots", "2TBs", "-1GB", "0", "1.2.3MB", "GB"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"memory must be a size such as 2GB.*got"):
        bytes_named(text)


@pytest.mark.parametrize(("each", "limit"), [(1, 100), (10, 35), (10, 1), (10, 10), (0, 5)])
def test_chunks_hold_everything_once_and_fit(each, limit):
    parts = list(chunks(range(11), each, limit))
    assert [item for part in parts for item in part] == list(range(11))
    assert all(len(part) * each <= limit or len(part) == 1 for part in parts)


def test_no_items_are_no_chunks():
    assert list(chunks([], 1, 10)) == []
