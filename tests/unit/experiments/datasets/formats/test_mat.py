"""MATLAB files of one's own, and those that are no samples."""

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from experiments import datasets
from experiments.datasets import DataError, DataWarning

X = np.random.default_rng(0).random((22, 5))
COUNTED = np.arange(22) % 10 + 1


def saved(folder, x, y, name="own_train"):
    savemat(folder / f"{name}.mat", {"X": x, "y": y})
    return datasets.load(name, folder)


@pytest.mark.parametrize("name", ["own", "own_train", "train", "trained_32x32"])
def test_samples_are_rows_of_x(tmp_path, name):
    own = saved(tmp_path, X, np.arange(22)[:, None] % 3, name)
    np.testing.assert_array_equal(own.inputs, X.astype(np.float32))
    assert own.targets.tolist() == [n % 3 for n in range(22)]
    assert (own.num_native_test, own.num_classes) == (0, 3)


@pytest.mark.parametrize("y", [COUNTED.astype(float), COUNTED.astype(np.uint8)[:, None]])
def test_classes_of_ones_own_are_counted_from_1_and_not_taken_for_digits(tmp_path, y):
    with pytest.warns(DataWarning, match=r"own_train\.mat: labels 1 to 10 are read as .* 0 to 9"):
        own = saved(tmp_path, X, y)
    assert own.targets.tolist() == (COUNTED - 1).tolist()


def test_classes_counted_from_1_may_be_absent_from_a_part(tmp_path):
    arrays = {"X": X, "y": COUNTED, "Xtest": X[:2]}
    savemat(tmp_path / "own.mat", arrays | {"ytest": [3, 10]})
    with pytest.warns(DataWarning, match=r"labels 1 to 10 are read"):
        assert datasets.load("own", tmp_path).targets[-2:].tolist() == [2, 9]
    savemat(tmp_path / "own.mat", arrays | {"ytest": [0, 10]})
    assert datasets.load("own", tmp_path).targets[-2:].tolist() == [0, 10]


@pytest.mark.parametrize("y", [np.arange(22) % 11, np.eye(11)[np.arange(22) % 11]])
def test_eleven_classes(tmp_path, y):
    assert saved(tmp_path, X, y).targets.tolist() == (np.arange(22) % 11).tolist()


def test_a_label_of_ten_is_no_zero_beside_labels_of_zero(tmp_path):
    images = X.reshape(-1, 1, 5)
    savemat(tmp_path / "usps_28x28.mat", {"X": images, "y": COUNTED})
    digits = datasets.load("usps", tmp_path)
    assert digits.targets.tolist() == (COUNTED % 10).tolist()
    savemat(tmp_path / "usps_28x28.mat", {"X": images, "y": np.arange(22) % 11})
    with pytest.raises(DataError, match=r"labels must be 0 to 9, got 10"):
        datasets.load("usps", tmp_path)


@pytest.mark.parametrize(("x", "y"), [("Xtest", "ytest"), ("X_test", "y_test")])
def test_test_samples_beside_x_and_y(tmp_path, x, y):
    labels = np.arange(22) % 3
    savemat(tmp_path / "own.mat", {"X": X, "y": labels, x: X[:4], y: labels[:4]})
    own = datasets.load("own", tmp_path)
    assert (len(own), own.num_native_test) == (26, 4)
    savemat(tmp_path / "own.mat", {"X": X, "y": labels, "Xval": X, x: X[:4]})
    with pytest.warns(
        DataWarning, match=rf"own\.mat holds arrays that are not read: {x}, Xval|Xval"
    ):
        assert len(datasets.load("own", tmp_path)) == 22


def test_rows_of_zeros_and_ones_are_labels_unless_they_are_one_hot(tmp_path):
    rows = np.random.default_rng(1).integers(0, 2, (22, 3))
    own = saved(tmp_path, X, rows.astype(float))
    np.testing.assert_array_equal(own.labelled(own.targets), rows)


def test_labels_of_one_sample_may_be_a_row(tmp_path):
    rows = np.array([[1, 0, 1], [0, 1, 1]])
    savemat(tmp_path / "own.mat", {"X": X[:2], "y": rows, "Xtest": X[:1], "ytest": rows[:1]})
    own = datasets.load("own", tmp_path)
    assert own.num_native_test == 1
    np.testing.assert_array_equal(own.labelled(own.targets)[2], rows[0])


def test_images_come_last_or_first(tmp_path):
    images = np.random.default_rng(0).random((22, 8, 6, 3))
    for x in (images, np.moveaxis(images, 0, 3)):
        own = saved(tmp_path, x, np.arange(22) % 2)
        np.testing.assert_array_equal(own.inputs, np.moveaxis(images, 3, 1).astype(np.float32))


def test_images_without_channels_come_last_or_first(tmp_path):
    images = np.random.default_rng(0).random((22, 8, 6))
    for x in (images, np.moveaxis(images, 0, 2)):
        own = saved(tmp_path, x, np.arange(22) % 2)
        np.testing.assert_array_equal(own.inputs[:, 0], images.astype(np.float32))


def test_a_row_of_labels_is_one_for_each_image_even_if_the_first_axis_is_one(tmp_path):
    for shape in ((1, 28, 28), (1, 50, 9), (1, 9)):
        images = np.random.default_rng(0).random((22, *shape))
        own = saved(tmp_path, np.moveaxis(images, 0, -1), np.arange(22) % 2)
        expected = images if len(shape) == 3 else images[:, None]
        np.testing.assert_array_equal(own.inputs, expected.astype(np.float32))


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (2, 40, 40), (4, 16, 16), (3, 8, 9)])
def test_the_sizes_tell_that_channels_are_first_wherever_samples_are(tmp_path, shape):
    images = np.random.default_rng(0).random((22, *shape))
    for x in (images, np.moveaxis(images, 0, 3)):
        own = saved(tmp_path, x, np.arange(22)[:, None] % 2)
        np.testing.assert_array_equal(own.inputs, images.astype(np.float32))


@pytest.mark.parametrize("shape", [(3, 8, 3), (8, 9, 7), (8, 8, 8)])
def test_channels_that_cannot_be_told_are_before_samples_with_a_warning(tmp_path, shape):
    images = np.random.default_rng(0).random((22, *shape))
    with pytest.warns(DataWarning, match=r"own_train\.mat: .* the last axis is taken. .* \.npz"):
        own = saved(tmp_path, np.moveaxis(images, 0, 3), np.arange(22) % 2)
    np.testing.assert_array_equal(own.inputs, np.moveaxis(images, 3, 1).astype(np.float32))


@pytest.mark.parametrize("shape", [(3, 8, 3), (8, 9, 7)])
def test_channels_that_cannot_be_told_are_after_samples_with_a_warning(tmp_path, shape):
    images = np.random.default_rng(0).random((22, *shape))
    with pytest.warns(DataWarning, match=r"own_train\.mat: .* the first axis is taken. .* \.npz"):
        own = saved(tmp_path, images, np.arange(22) % 2)
    np.testing.assert_array_equal(own.inputs, images.astype(np.float32))


def test_volumes_after_samples_are_as_in_the_file(tmp_path):
    volumes = np.random.default_rng(0).random((22, 8, 8, 8))
    own = saved(tmp_path, volumes, np.arange(22) % 2)
    np.testing.assert_array_equal(own.inputs, volumes.astype(np.float32))


@pytest.mark.parametrize("is_last", [True, False])
def test_one_part_tells_where_the_samples_of_the_other_are(tmp_path, is_last):
    images = np.random.default_rng(0).random((40, 32, 32, 3))
    labels, place = np.arange(40) % 2, 3 if is_last else 0
    test = np.moveaxis(images[:32], 0, place)
    some = np.moveaxis(images[:20], 0, place)
    for x, y, held, labels_of in ((some, 20, test, 32), (test, 32, some, 20)):
        arrays = {"X": x, "y": labels[:y], "Xtest": held, "ytest": labels[:labels_of]}
        savemat(tmp_path / "own.mat", arrays)
        own = datasets.load("own", tmp_path)
        expected = np.concatenate([images[:y], images[:labels_of]])
        np.testing.assert_array_equal(own.inputs, np.moveaxis(expected, 3, 1).astype(np.float32))


@pytest.mark.parametrize("shape", [(3, 8, 8, 3), (8, 9, 8), (32, 3, 32, 32)])
def test_an_axis_of_samples_that_cannot_be_told(tmp_path, shape):
    with pytest.raises(DataError, match=r"own_train\.mat: X of shape .* first axis or in its last"):
        saved(tmp_path, np.zeros(shape), np.arange(shape[0]) % 2)


def test_samples_of_svhn_are_the_last_axis_even_if_the_first_is_as_long(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (32, 32, 32, 3), dtype=np.uint8)
    for name in ("train", "test"):
        arrays = {"X": np.moveaxis(images, 0, 3), "y": np.arange(32) % 10 + 1}
        savemat(tmp_path / f"{name}_32x32.mat", arrays)
    svhn = datasets.load("svhn", tmp_path)
    expected = np.moveaxis(images, 3, 1).astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(svhn.inputs[:32], expected)


def test_sparse_inputs(tmp_path):
    own = saved(tmp_path, csc_array(X * (X > 0.5)), np.arange(22) % 2)
    np.testing.assert_array_equal(own.inputs, (X * (X > 0.5)).astype(np.float32))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.arange(22) % 3 + 2, r"got 3 distinct ones: 2, 3, 4; number the labels"),
        (np.arange(22) / 4, r"labels must be integers 0 to k - 1, got type float64"),
        (np.array(["cat", "dogs"] * 11, dtype=object), r"integers 0 to k - 1, got type object"),
        (np.arange(21) % 3, r"of the same length, got \(22, 5\) and \(21,\)"),
        (np.zeros((0, 0)), r"got \(22, 5\) and \(0, 0\)"),
    ],
)
def test_labels_of_ones_own_that_cannot_be_used(tmp_path, y, message):
    with pytest.raises(DataError, match=message):
        saved(tmp_path, X, y)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "must hold X and y, or the arrays of one of the files"),
        ({"dataset": np.zeros(3)}, "2 x 2 cell array"),
    ],
)
def test_other_matlab_files(tmp_path, arrays, message):
    savemat(tmp_path / "usps_28x28.mat", arrays)
    with pytest.raises(DataError, match=message):
        datasets.load("usps", data_dir=tmp_path)


def test_a_damaged_matlab_file(tmp_path):
    (tmp_path / "usps_28x28.mat").write_bytes(b"damaged")
    with pytest.raises(DataError, match="cannot be read as a MATLAB file"):
        datasets.load("usps", data_dir=tmp_path)
