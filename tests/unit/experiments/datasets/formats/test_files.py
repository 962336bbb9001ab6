"""Looking at files and folders: what cannot be read is left out, or an error of data."""

import errno
import gzip
from pathlib import Path

import pytest

from experiments.datasets import DataError
from experiments.datasets.formats.files import (
    content_of,
    ending_of,
    files_below,
    inside,
    is_file,
    is_folder,
    seen,
    text_of,
)


def refuse(path, *_, **__):
    raise PermissionError(errno.EACCES, "Permission denied", str(path))


def test_what_may_not_be_looked_at_is_neither_file_nor_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "stat", refuse)
    assert not is_file(tmp_path)
    assert not is_folder(tmp_path)


def test_a_folder_that_cannot_be_read_is_empty_to_look_at(tmp_path, monkeypatch):
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    assert inside(tmp_path) == seen(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert seen(tmp_path) == []
    with pytest.raises(DataError, match=r"cannot be read: Permission denied$"):
        inside(tmp_path)


def test_files_below_a_folder_and_its_links(tmp_path):
    for file in ("top/b/1", "top/b/.hidden", "top/.git/1", "top/2", "other/3"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "top" / "a").symlink_to(tmp_path / "other")
    (tmp_path / "other" / "loop").symlink_to(tmp_path / "top")
    (tmp_path / "top" / "b" / "b").symlink_to(tmp_path / "top" / "b" / "b")
    found = [str(file.relative_to(tmp_path / "top")) for file in files_below(tmp_path / "top")]
    assert found == ["2", "a/3", "b/1", "b/b"]


@pytest.mark.parametrize("name", ["own.txt", "own.txt.gz", "own.txt.GZ"])
def test_text_is_decompressed_by_the_ending_in_any_case(tmp_path, name):
    content = "caf\xe9".encode()
    is_packed = name != "own.txt"
    (tmp_path / name).write_bytes(gzip.compress(content) if is_packed else content)
    assert text_of(tmp_path / name) == "caf\xe9"
    with pytest.raises(DataError, match=r"own\.txt.* cannot be read: 'ascii' codec"):
        text_of(tmp_path / name, "ascii")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("own.gz", b"no archive", r"cannot be read: Not a gzipped file"),
        ("own.gz", gzip.compress(b"text", mtime=0)[:-9], r"cannot be read: Compressed file ended"),
        ("folder", None, r"folder cannot be read: Is a directory$"),
        ("gone", None, r"gone cannot be read: No such file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    (tmp_path / "folder").mkdir()
    if content:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        content_of(tmp_path / name)


def test_the_longest_ending_counts():
    assert ending_of("own.TSV.gz", (".tsv", ".gz", ".tsv.gz")) == ".tsv.gz"
    assert ending_of("own.txt", (".tsv", ".gz")) == ""
