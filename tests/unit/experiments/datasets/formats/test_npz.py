"""NumPy archives: reading, and errors of corrupt files."""

import io

import numpy as np
import pytest
from PIL import Image

from experiments import datasets
from experiments.datasets import DataError, DataWarning

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
    with pytest.raises(DataError, match=r"holds 2 \.npz files, of which the path of one"):
        datasets.load(tmp_path / "domain")


def test_validation_samples_are_training_samples_beside_a_test_set(tmp_path, write_npz):
    more = {"x_val": np.full((3, 5, 4), 255, np.uint8), "y_val": np.arange(3)}
    found = datasets.load(write_npz(tmp_path / "own.npz", **more))
    assert (len(found), found.num_native_test) == (21, 6)
    assert (found.inputs[12:15] == 1).all()
    without = {"x_test": None, "y_test": None}
    assert datasets.load(write_npz(tmp_path / "own.npz", **more, **without)).num_native_test == 3
    more["x_val"] = more["x_val"][:, 1:]
    with pytest.raises(
        DataError, match="training and validation and test inputs must agree in shape"
    ):
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
    with pytest.raises(DataError, match=r"plain arrays.* \(array x_train: ValueError: Object"):
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
    for wrong, got in (
        (test + 1, r"got 2 among rows of shape \(6, 3\)"),
        (test[:, :2], "got rows"),
    ):
        message = rf"\(test part\): labels must be rows of 0 and 1, .* \(samples, 3\) .*{got}"
        with pytest.raises(DataError, match=message):
            datasets.load(write_npz(tmp_path / "own.npz", y_train=train, y_test=wrong))


def test_arrays_without_a_part_in_their_name_are_those_of_training(tmp_path, write_npz):
    named = {"x_train": None, "y_train": None, "x": np.full((4, 5, 4), 255, np.uint8)}
    found = datasets.load(write_npz(tmp_path / "own.npz", **named, y=np.arange(4) % 3))
    assert (len(found), found.num_native_test) == (10, 6)


@pytest.mark.parametrize("ending", ["val", "valid", "validation", "dev"])
def test_names_of_validation_arrays(tmp_path, ending, write_npz):
    more = {f"x_{ending}": np.zeros((3, 5, 4), np.uint8), f"y_{ending}": np.arange(3)}
    found = datasets.load(write_npz(tmp_path / "own.npz", **more))
    assert (len(found), found.num_native_test) == (21, 6)


@pytest.mark.parametrize(
    "others",
    [
        ("X_test2", "Y_test2"),
        ("x", "y"),
        ("x_dev", "x_val"),
        ("test_x", "test_y"),
        ("writers", "domains", "groups", "users", "classes"),
        ("scaling", "seed"),
    ],
)
def test_arrays_that_are_not_read_are_told(tmp_path, others, write_npz):
    held = {"x_val": np.zeros((3, 5, 4), np.uint8)}
    path = write_npz(tmp_path / "own.npz", y_val=np.arange(3), **dict.fromkeys(others, 0) | held)
    unread = ", ".join(name for name in others if name not in held)
    with pytest.warns(
        DataWarning, match=rf"own\.npz holds arrays .* not read: {unread}; .*own_train_wr"
    ) as told:
        datasets.load(path)
    assert [one.filename for one in told] == [__file__]


def test_what_an_archive_without_samples_holds_is_told(tmp_path, images):
    path = tmp_path / "own.npz"
    for names in (("X_train", "Y_train"), ("X", "y"), ("X_train", "y_train")):
        np.savez(path, **dict(zip(names, (images(3), np.arange(3)), strict=True)))
        lacks = names[0].lower() if names[1].islower() else "x_train"
        message = (
            rf"x_train and y_train, or x and y, .* lacks {lacks}, and holds {', '.join(names)}$"
        )
        with pytest.raises(DataError, match=message):
            datasets.load(path)


def test_one_array_is_no_archive(tmp_path, images):
    path = tmp_path / "own.npz"
    with path.open("wb") as file:
        np.save(file, images(3))
    with pytest.raises(DataError, match=r"\(ValueError: it holds one array without a name, as"):
        datasets.load(path)


@pytest.mark.parametrize("test", [True, False])
def test_empty_arrays_of_validation_are_left_out(tmp_path, test, write_npz):
    more = {"x_val": np.zeros((0, 5, 4), np.uint8), "y_val": np.arange(0)}
    more |= {} if test else {"x_test": None, "y_test": None}
    path = write_npz(tmp_path / "own.npz", **more)
    np.savez(tmp_path / "own_train_writers.npz", writer=np.arange(12))
    if test:
        np.savez(tmp_path / "own_test_writers.npz", writer=np.arange(6))
    found = datasets.load(path)
    assert (len(found) - found.num_native_test, found.num_native_test) == (12, 6 * test)
    with pytest.raises(DataError, match="of the same length"):
        datasets.load(write_npz(path, **more | {"y_val": np.arange(2)}))


def test_arrays_may_be_called_training_and_testing(tmp_path, images):
    labels = np.arange(3)
    parts = {"x_training": images(3), "y_training": labels, "x_testing": images(3)}
    np.savez(tmp_path / "own.npz", **parts, y_testing=labels)
    found = datasets.load("own", tmp_path)
    assert (len(found), found.num_native_test) == (6, 3)


def test_what_is_given_counts_more_than_what_an_archive_says(tmp_path, write_npz):
    kept = write_npz(tmp_path / "own.npz", scaled=False)
    assert datasets.load(kept).inputs.max() > 1
    assert datasets.load(kept, scaled=True).inputs.max() <= 1
    assert datasets.load(kept, highest=510).inputs.max() <= 0.5
    divided = write_npz(tmp_path / "own.npz", highest=510)
    assert datasets.load(divided, scaled=True).inputs.max() <= 0.5
    assert datasets.load(divided, scaled=False).inputs.max() > 1


def test_parts_of_an_archive_have_one_scale(tmp_path, write_npz):
    more = {"x_val": np.ones((3, 5, 4)), "y_val": np.arange(3)}
    with pytest.raises(DataError, match=r"training uint8 up to \d+, validation float64 up to 1, "):
        datasets.load(write_npz(tmp_path / "own.npz", **more))


@pytest.mark.parametrize(
    ("sizes", "got"),
    [
        ([], "none$"),
        ([(5, 4), (5, 4), (4, 4)], r"\(3, 4, 5\) and, of image 2, \(3, 4, 4\)$"),
        ([(5, 4), (4, 5)], r"\(3, 4, 5\) and, of image 1, \(3, 5, 4\) when photographs are turned"),
    ],
)
def test_jpeg_images_agree_in_shape(tmp_path, sizes, got):
    content = []
    for size in sizes:
        Image.new("RGB", size).save(file := io.BytesIO(), "JPEG")
        content.append(file.getvalue())
    arrays = {
        "jpeg": np.frombuffer(b"".join(content), np.uint8),
        "offsets": np.cumsum([0, *map(len, content)]),
        "label": np.arange(len(sizes)) % 2,
        "is_train": np.ones(len(sizes), bool),
    }
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(DataError, match=rf"images must agree in shape, at least one, got {got}"):
        datasets.load(tmp_path / "own.npz")


def test_writers_of_an_archive(tmp_path, write_npz):
    path = write_npz(tmp_path / "own.npz")

    def load(train, test, key="writer"):
        np.savez(tmp_path / "own_train_writers.npz", **{key: train})
        np.savez(tmp_path / "own_test_writers.npz", **{key: test})
        return datasets.load(path).writers.tolist()

    assert load(np.arange(12) * 2, np.arange(6.0)) == [*range(0, 24, 2), *range(6)]
    assert load(np.array([*"abcabcabcabc"]), np.array([*"ccddaa"]))[10:] == [1, 2, 2, 2, 3, 3, 0, 0]
    with pytest.raises(DataError, match=r"writers must be one whole number or name per sample"):
        load(np.arange(12) / 2, np.arange(6))
    with pytest.raises(DataError, match=r"own_train_writers\.npz must hold writer, got writers"):
        load(np.arange(12), np.arange(6), "writers")
    for train, got in ((np.arange(5), r"12 training samples, got shape \(5,\)"), (3, r".*\(\)")):
        with pytest.raises(DataError, match=rf"own_train_writers\.npz: writer must .* of {got}"):
            load(train, np.arange(6))
    (tmp_path / "own_test_writers.npz").unlink()
    with pytest.raises(DataError, match=r"lacks own_test_writers\.npz, the writers of the other"):
        datasets.load(path)


def test_writers_of_samples_of_validation_follow_those_of_training(tmp_path, write_npz):
    more = {"x_val": np.zeros((3, 5, 4), np.uint8), "y_val": np.arange(3)}
    path = write_npz(tmp_path / "own.npz", **more)
    np.savez(tmp_path / "own_test_writers.npz", writer=np.arange(6))
    np.savez(tmp_path / "own_train_writers.npz", writer=np.arange(12))
    with pytest.raises(DataError, match=r"each of 12 training and 3 validation samples, got shape"):
        datasets.load(path)
    np.savez(tmp_path / "own_train_writers.npz", writer=np.arange(15))
    assert datasets.load(path).writers.tolist() == [*range(15), *range(6)]


@pytest.mark.parametrize("parts", [("train", "test"), ("test",)])
def test_writers_of_test_samples_that_are_not_there(tmp_path, parts, write_npz):
    path = write_npz(tmp_path / "own.npz", x_test=None, y_test=None)
    for part in parts:
        np.savez(tmp_path / f"own_{part}_writers.npz", writer=np.arange(12))
    with pytest.raises(DataError, match=r"own_test_writers\.npz has writers of test samples, but "):
        datasets.load(path)


def test_a_folder_with_an_archive_and_its_writers(tmp_path, write_npz):
    write_npz(tmp_path / "own" / "own.npz")
    for part, size in (("train", 12), ("test", 6)):
        np.savez(tmp_path / "own" / f"own_{part}_writers.npz", writer=np.arange(size))
    for found in (datasets.load("own", tmp_path), datasets.load(tmp_path / "own")):
        assert found.writers.tolist() == [*range(12), *range(6)]


@pytest.mark.parametrize("key", ["x_val", "y_val", "x_train", "y_test"])
def test_one_number_in_place_of_an_array(tmp_path, key, write_npz):
    more = {"x_val": np.zeros((3, 5, 4), np.uint8), "y_val": np.arange(3)}
    path = write_npz(tmp_path / "own.npz", **more | {key: 0})
    with pytest.raises(DataError, match=rf"own\.npz, {key}: must be an array of samples, got one"):
        datasets.load(path)


@pytest.mark.parametrize("ending", ["NPZ", "Npz"])
def test_the_ending_of_an_archive_is_read_in_any_case(tmp_path, ending, write_npz):
    path = write_npz(tmp_path / "own.npz").rename(tmp_path / f"Own.{ending}")
    for found in (datasets.load("Own", tmp_path), datasets.load(path)):
        assert found.name == "Own"
    assert "Own" in {info.name for info in datasets.available(tmp_path)}
    with pytest.raises(DataError, match=rf"other\.{ending} does not exist"):
        datasets.load(f"other.{ending}", tmp_path)
