"""EMNIST: file names, upright images, labels that begin at 1."""

import gzip

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError


@pytest.fixture
def write_emnist(tmp_path, idx_bytes):
    def write(split, labels, first):
        folder = tmp_path / "emnist"
        folder.mkdir(exist_ok=True)
        images = np.random.default_rng(0).integers(0, 256, (labels, 28, 28), dtype=np.uint8)
        for part in ("train", "test"):
            stem = folder / f"emnist-{split}-{part}"
            arrays = {"images-idx3": images, "labels-idx1": np.arange(labels) + first}
            for kind, array in arrays.items():
                path = stem.with_name(f"{stem.name}-{kind}-ubyte.gz")
                path.write_bytes(gzip.compress(idx_bytes(array)))
        return images

    return write


@pytest.mark.parametrize(("split", "labels"), [("balanced", 47), ("byclass", 62), ("digits", 10)])
def test_splits_are_upright(tmp_path, write_emnist, split, labels):
    stored = write_emnist(split, labels, 0)
    emnist = datasets.load(f"emnist-{split}", data_dir=tmp_path)
    assert (emnist.num_classes, emnist.num_native_test, len(emnist)) == (labels, labels, 2 * labels)
    np.testing.assert_allclose(emnist.inputs[3, 0] * 255, stored[3].T, atol=1e-4)


def test_letters_begin_at_zero_and_a_to_j_are_ten_classes(tmp_path, write_emnist):
    stored = write_emnist("letters", 26, 1)
    letters = datasets.load("emnist-letters", data_dir=tmp_path)
    assert letters.targets.tolist() == list(range(26)) * 2
    few = datasets.load("emnist-a-j", data_dir=tmp_path)
    assert few.targets.tolist() == list(range(10)) * 2
    np.testing.assert_allclose(few.inputs[9, 0] * 255, stored[9].T, atol=1e-4)


def test_a_file_of_the_split_that_is_missing(tmp_path, write_emnist):
    write_emnist("letters", 26, 1)
    (tmp_path / "emnist" / "emnist-letters-test-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="lacks the test labels: emnist-letters-test-labels"):
        datasets.load("emnist-letters", data_dir=tmp_path)


@pytest.mark.parametrize(("split", "labels", "first"), [("letters", 27, 0), ("digits", 11, 0)])
def test_labels_that_the_split_does_not_have(tmp_path, write_emnist, split, labels, first):
    write_emnist(split, labels, first)
    with pytest.raises(DataError, match=rf"emnist-{split}-train-labels.*: labels must be"):
        datasets.load(f"emnist-{split}", data_dir=tmp_path)


def test_files_in_the_data_directory_itself(tmp_path, write_emnist):
    write_emnist("letters", 26, 1)
    folder = tmp_path / "emnist"
    assert len(datasets.load("emnist-letters", data_dir=folder)) == 52
    with pytest.raises(DataError, match=r"files of EMNIST, which load\('emnist-letters', "):
        datasets.load(folder)
