"""NumPy archives: reading, and errors of corrupt files."""

import io

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError

BARE = io.BytesIO()
np.save(BARE, np.arange(3))


def test_npz_is_read_by_name_and_by_path(tmp_path, images, write_npz):
    path = write_npz(tmp_path / "own.npz")
    by_name = datasets.load("own", data_dir=tmp_path)
    by_path = datasets.load(path)
    by_text = datasets.load(str(path))
    for read in (by_name, by_path, by_text):
        np.testing.assert_allclose(read.inputs[:12, 0] * 255, images(12), atol=1e-4)
        assert (read.name, len(read), read.num_native_test) == ("own", 18, 6)


def test_npz_without_a_test_set(tmp_path, write_npz):
    path = write_npz(tmp_path / "own.npz", x_test=None, y_test=None)
    assert datasets.load(path).num_native_test == 0


def test_a_folder_with_one_archive_is_read(tmp_path, write_npz):
    write_npz(tmp_path / "domain" / "arrays.npz")
    assert datasets.load("domain", data_dir=tmp_path).name == "domain"
    assert datasets.load(tmp_path / "domain").name == "domain"
    write_npz(tmp_path / "domain" / "more.npz")
    with pytest.raises(DataError, match=r"neither IDX files nor one \.npz"):
        datasets.load(tmp_path / "domain")


def test_validation_samples_are_training_samples_beside_a_test_set(tmp_path, write_npz):
    more = {"x_val": np.full((3, 5, 4), 255, np.uint8), "y_val": np.arange(3)}
    found = datasets.load(write_npz(tmp_path / "own.npz", **more))
    assert (len(found), found.num_native_test) == (21, 6)
    assert (found.inputs[12:15] == 1).all()
    without = {"x_test": None, "y_test": None}
    assert datasets.load(write_npz(tmp_path / "own.npz", **more, **without)).num_native_test == 3
    more["x_val"] = more["x_val"][:, 1:]
    with pytest.raises(DataError, match="samples of all splits must agree in shape"):
        datasets.load(write_npz(tmp_path / "own.npz", **more))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken", BARE.getvalue()])
def test_broken_archive(tmp_path, content):
    path = tmp_path / "own.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"own\.npz cannot be read"):
        datasets.load("own", data_dir=tmp_path)


def test_a_damaged_member_of_an_archive(tmp_path, write_npz):
    path = write_npz(tmp_path / "own.npz")
    content = bytearray(path.read_bytes())
    content[content.index(b"x_train") + 200] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"own\.npz cannot be read"):
        datasets.load(path)


def test_pickled_objects_are_never_loaded(tmp_path, write_npz):
    path = write_npz(tmp_path / "own.npz", x_train=np.array([{}] * 12, dtype=object))
    with pytest.raises(DataError, match="plain arrays"):
        datasets.load(path)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"x_train": None}, "lacks x_train"),
        ({"y_test": None}, "lacks y_test"),
        ({"x_val": np.ones((2, 5, 4))}, "lacks y_val"),
    ],
)
def test_archive_that_lacks_an_array(tmp_path, changes, missing, write_npz):
    with pytest.raises(DataError, match=missing):
        datasets.load(write_npz(tmp_path / "own.npz", **changes))


def test_rows_of_zeros_and_ones_are_labels(tmp_path, write_npz):
    random = np.random.default_rng(0)
    train, test = (random.integers(0, 2, size=(n, 3)) for n in (12, 6))
    read = datasets.load(write_npz(tmp_path / "own.npz", y_train=train, y_test=test))
    both = np.concatenate([train, test])
    np.testing.assert_array_equal(read.labelled(read.targets), both)
    assert (read.num_outputs, read.num_classes) == (3, len(np.unique(both, axis=0)))
    for wrong in ({"y_test": test + 1}, {"y_test": test[:, :2]}):
        with pytest.raises(DataError, match="labels must be rows of 0 and 1, as many in each part"):
            datasets.load(write_npz(tmp_path / "own.npz", **{"y_train": train, **wrong}))
