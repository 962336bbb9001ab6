"""Tweets as word numbers."""

import gzip

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError, DataWarning
from experiments.datasets.formats.tweets import word_numbers


def test_word_numbers_are_whole_and_padded():
    numbers = word_numbers(["Good good day", "", "a b c d e " * 6])
    assert numbers.shape == (3, 25)
    assert numbers[0, 0] == numbers[0, 1] != numbers[0, 2]
    assert not numbers[0, 3:].any()
    assert not numbers[1].any()
    assert ((numbers[2] >= 1) & (numbers[2] < 10_000) & (numbers[2] % 1 == 0)).all()


def test_tweets_without_users(tmp_path):
    content = "1\tso happy\n0\tso sad\n1\ta tab\there\n"
    (tmp_path / "sentiment140_100k.tsv.gz").write_bytes(gzip.compress(content.encode()))
    for name in ("sentiment140", "sentiment140_100k"):
        tweets = datasets.load(name, data_dir=tmp_path)
        assert tweets.targets.tolist() == [1, 0, 1]
        assert tweets.input_shape == (25,)
        assert tweets.inputs[0, 0] == tweets.inputs[1, 0]
        assert tweets.writers is None


def test_the_published_file_of_sentiment140_has_users(tmp_path):
    rows = ['"0","1","Mon","NO_QUERY","ann","so, sad"', '"4","2","Tue","NO_QUERY","bob","caf\xe9"']
    path = tmp_path / "training.1600000.processed.noemoticon.csv"
    path.write_bytes("\n".join([*rows, rows[0]]).encode("latin-1"))
    tweets = datasets.load("sentiment140", data_dir=tmp_path)
    assert tweets.targets.tolist() == [0, 1, 0]
    assert tweets.writers.tolist() == [0, 1, 0]


def test_a_row_of_sentiment140_that_is_cut_off_is_named(tmp_path):
    path = tmp_path / "training.1600000.processed.noemoticon.csv"
    path.write_text('"0","1","Mon","NO_QUERY","ann","so, sad"\n"4","2","Tue","NO_Q')
    with pytest.raises(DataError, match="tweet 2: must have 6 fields, got 4"):
        datasets.load("sentiment140", data_dir=tmp_path)


def test_a_label_that_is_none(tmp_path):
    (tmp_path / "own.tsv").write_text("2\tneutral\n")
    with pytest.raises(DataError, match=r"own\.tsv, line 1: .* 1 or 4 \(positive\), got '2'"):
        datasets.load("own", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\tann\tfine\n1\tbob\tbad\n", r"own\.tsv, line 1: .* got 3 columns, as in 2 of 2 lines"),
        ("0\tann\t\n1\tbob\tbad\r\n1\tid\tyes\n", r"line 2: .* got 3 columns, as in 2 of 3 lines"),
        (
            "fine\t1\nbad\t0\n",
            r"got a label after the text in line 1; write labels first",
        ),
        ("0\ta\tb\t1\n1\tc\td\t1\n", r"line 1: .* got 4 columns, as in 2 of 2 lines"),
        ("0\t0.5\t\n1\t1e-3\t\n", r"label<TAB>text, got numbers alone; save a table as"),
        ("0\tfine\n\n3\tbad\n", r"own\.tsv, line 3: labels must be 0"),
        ("", r"own\.tsv holds no tweets"),
        ("0\tfine\n1\n", r"own\.tsv, line 2: must be label<TAB>text, got '1'"),
        ("0\t0.5\t2.5\n1\t1e-3\tnan\n", r"label<TAB>text, got numbers alone; save a table as"),
    ],
)
def test_lines_that_are_no_tweets(tmp_path, content, message):
    (tmp_path / "own.tsv").write_text(content)
    with pytest.raises(DataError, match=message):
        datasets.load("own", data_dir=tmp_path)


def test_tabs_inside_texts_are_told_and_read_as_spaces(tmp_path):
    (tmp_path / "own.tsv").write_text("0\tso sad\n1\tso\thappy\n0\tbad\n")
    with pytest.warns(DataWarning, match=r"1 text of 3, first in line 2, holds tabs, which"):
        tabs = datasets.load("own", tmp_path)
    (tmp_path / "own.tsv").write_text("0\tso sad\n1\tso happy\n0\tbad\n")
    np.testing.assert_array_equal(tabs.inputs, datasets.load("own", tmp_path).inputs)


def test_tabs_at_the_end_of_lines_are_no_columns(tmp_path):
    (tmp_path / "own.tsv").write_text("1\tgood day\t\n0\tbad day\t\n1\tgood\tday\n")
    with pytest.warns(DataWarning, match=r"1 text of 3, first in line 3, holds tabs, which"):
        assert datasets.load("own", tmp_path).targets.tolist() == [1, 0, 1]


@pytest.mark.parametrize("end", ["\t", "\t\t", "\t\r"])
def test_tabs_at_the_end_of_lines_are_left_out(tmp_path, end):
    (tmp_path / "own.tsv").write_text(f"0\tso sad{end}\n1\tso happy\n0\tbad{end}\n", newline="")
    assert datasets.load("own", tmp_path).targets.tolist() == [0, 1, 0]


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz"])
def test_tweets_of_sentiment140_are_known_to_hold_tabs(tmp_path, ending):
    content = b"1\ta\ttab\n0\tand\tone\n"
    path = tmp_path / f"sentiment140_100k{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    assert datasets.load(path).targets.tolist() == [1, 0]


def test_a_mark_of_byte_order_is_left_out(tmp_path):
    (tmp_path / "own.tsv").write_bytes("\ufeff0\tso sad\r\n1\tso happy\r\n".encode())
    assert datasets.load("own", data_dir=tmp_path).targets.tolist() == [0, 1]


def test_a_file_of_sentiment140_that_is_cut_off_within_a_text(tmp_path):
    path = tmp_path / "training.1600000.processed.noemoticon.csv"
    path.write_text('"0","1","Mon","NO_QUERY","ann","' + "a" * 200_000)
    with pytest.raises(DataError, match=r"noemoticon\.csv cannot be read: field larger than"):
        datasets.load("sentiment140", data_dir=tmp_path)
