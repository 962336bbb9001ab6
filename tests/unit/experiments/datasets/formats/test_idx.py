"""IDX files: reading, and errors of corrupt files."""

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError
from experiments.datasets.formats.idx import read_idx


@pytest.mark.parametrize(("packed", "dot"), [(True, "-"), (False, "-"), (False, ".")])
def test_idx_files_are_read_byte_for_byte(tmp_path, packed, dot, images, write_idx):
    write_idx(tmp_path / "mine", packed, dot)
    mine = datasets.load("mine", data_dir=tmp_path)
    np.testing.assert_allclose(mine.inputs[:12, 0] * 255, images(12), atol=1e-4)
    np.testing.assert_allclose(mine.inputs[12:, 0] * 255, images(6, seed=1), atol=1e-4)
    assert mine.inputs.shape == (18, 1, 5, 4)
    assert mine.targets.tolist() == [0, 1, 2] * 6
    assert (mine.num_classes, mine.num_native_test) == (3, 6)
    assert str(tmp_path / "mine") in mine.source


def break_file(path, change):
    path.write_bytes(change(path.read_bytes()))


def test_wrong_magic_number(tmp_path, idx_bytes):
    path = tmp_path / "file"
    path.write_bytes(idx_bytes(np.arange(4)))
    with pytest.raises(DataError, match="must begin with 00000803, got 00000801"):
        read_idx(path, 3)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="got nothing"):
        read_idx(path, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content[:-1],
            r"truncated: its header states \(4,\), 12 bytes in all, got 11",
        ),
        (lambda content: content[:6], "truncated: its header takes 8 bytes, got 6"),
        (lambda content: content + b"x", "too long"),
    ],
)
def test_idx_file_of_the_wrong_length(tmp_path, change, message, idx_bytes):
    path = tmp_path / "file"
    path.write_bytes(change(idx_bytes(np.arange(4))))
    with pytest.raises(DataError, match=message):
        read_idx(path, 1)


@pytest.mark.parametrize("change", [lambda content: content[:-9], lambda content: b"no gzip"])
def test_broken_gzip_names_the_file(tmp_path, change, images, write_idx):
    folder = write_idx(tmp_path / "mine")
    break_file(folder / "t10k-images-idx3-ubyte.gz", change)
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz cannot be read"):
        datasets.load(folder)


def test_a_missing_idx_file_is_named(tmp_path, write_idx):
    folder = write_idx(tmp_path / "mine")
    (folder / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="lacks the training labels: train-labels-idx1-ubyte"):
        datasets.load("mine", data_dir=tmp_path)


def test_known_names_have_their_classes_whichever_are_there(tmp_path, write_idx, idx_bytes):
    for name in ("mnist", "fashion-mnist"):
        folder = write_idx(tmp_path / name, packed=False)
        assert datasets.load(name, data_dir=tmp_path).num_classes == 10
        labels = folder / "t10k-labels-idx1-ubyte"
        labels.write_bytes(idx_bytes(np.array([0, 1, 2, 10, 4, 5])))
        with pytest.raises(DataError, match=r"t10k-labels.*: labels must be 0 to 9, got 10"):
            datasets.load(name, data_dir=tmp_path)
