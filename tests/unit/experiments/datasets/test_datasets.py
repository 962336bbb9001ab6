"""Data sets: reading, scaling, where they are looked for, and what is refused."""

import gzip
import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError, Dataset, catalogue
from experiments.datasets.idx import read_idx

DEBIAN = Path("/usr/share/datasets/fashion-mnist")


@pytest.fixture(autouse=True)
def only_given_places(monkeypatch, tmp_path):
    monkeypatch.delenv("BCFL_DATA", raising=False)
    monkeypatch.setattr(catalogue, "SYSTEM_FOLDER", tmp_path / "system")


def idx_bytes(array):
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


def images(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size=(count, 5, 4), dtype=np.uint8)


def write_idx(folder, packed=True, dot="-"):
    folder.mkdir(parents=True)
    labels = np.arange(12) % 3
    arrays = {
        f"train-images{dot}idx3-ubyte": images(12),
        f"train-labels{dot}idx1-ubyte": labels,
        f"t10k-images{dot}idx3-ubyte": images(6, seed=1),
        f"t10k-labels{dot}idx1-ubyte": labels[:6],
    }
    for name, array in arrays.items():
        content = idx_bytes(array)
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)
    return folder


def write_npz(path, **changes):
    arrays = {"x_train": images(12), "y_train": np.arange(12) % 3}
    arrays |= {"x_test": images(6, seed=1), "y_test": np.arange(6) % 3}
    arrays |= changes
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    return path


def test_optdigits_are_images_in_the_unit_interval():
    digits = datasets.load("optdigits")
    assert digits.inputs.shape == (1797, 1, 8, 8)
    assert digits.inputs.dtype == np.float32
    assert digits.inputs.min() == 0
    assert digits.inputs.max() == 1
    # First image of the UCI test file: the second row of its zero is 0 0 13 15 10 15 5 0.
    np.testing.assert_array_equal(digits.inputs[0, 0, 1] * 16, [0, 0, 13, 15, 10, 15, 5, 0])
    assert digits.targets[:10].tolist() == list(range(10))
    assert repr(digits) == (
        "Dataset(optdigits: 1797 samples of (1, 8, 8), 10 classes, 0 of them native test)"
    )


@pytest.mark.parametrize(("packed", "dot"), [(True, "-"), (False, "-"), (False, ".")])
def test_idx_files_are_read_byte_for_byte(tmp_path, packed, dot):
    write_idx(tmp_path / "mine", packed, dot)
    mine = datasets.load("mine", data_dir=tmp_path)
    np.testing.assert_allclose(mine.inputs[:12, 0] * 255, images(12), atol=1e-4)
    np.testing.assert_allclose(mine.inputs[12:, 0] * 255, images(6, seed=1), atol=1e-4)
    assert mine.inputs.shape == (18, 1, 5, 4)
    assert mine.targets.tolist() == [0, 1, 2] * 6
    assert (mine.num_classes, mine.num_native_test) == (3, 6)
    assert str(tmp_path / "mine") in mine.source


def test_npz_is_read_by_name_and_by_path(tmp_path):
    path = write_npz(tmp_path / "own.npz")
    by_name = datasets.load("own", data_dir=tmp_path)
    by_path = datasets.load(path)
    by_text = datasets.load(str(path))
    for read in (by_name, by_path, by_text):
        np.testing.assert_allclose(read.inputs[:12, 0] * 255, images(12), atol=1e-4)
        assert (read.name, len(read), read.num_native_test) == ("own", 18, 6)


def test_npz_without_a_test_set(tmp_path):
    path = write_npz(tmp_path / "own.npz", x_test=None, y_test=None)
    assert datasets.load(path).num_native_test == 0


def test_a_folder_with_one_archive_is_read(tmp_path):
    write_npz(tmp_path / "domain" / "arrays.npz")
    assert datasets.load("domain", data_dir=tmp_path).name == "domain"
    assert datasets.load(tmp_path / "domain").name == "domain"
    write_npz(tmp_path / "domain" / "more.npz")
    with pytest.raises(DataError, match=r"neither IDX files nor one \.npz"):
        datasets.load(tmp_path / "domain")


def test_data_dir_comes_before_the_variable_and_the_system_folder(tmp_path, monkeypatch):
    places = [tmp_path / "given", tmp_path / "variable", tmp_path / "system"]
    for place in places:
        write_npz(place / "own.npz")
    monkeypatch.setenv("BCFL_DATA", str(places[1]))
    assert str(places[0]) in datasets.load("own", data_dir=places[0]).source
    assert str(places[1]) in datasets.load("own").source
    monkeypatch.setenv("BCFL_DATA", str(tmp_path / "nowhere"))
    assert str(places[2]) in datasets.load("own").source


def test_fashion_mnist_in_the_folder_of_debian_and_of_torchvision(tmp_path):
    write_idx(tmp_path / "FashionMNIST" / "raw")
    assert "raw" in datasets.load("fashion-mnist", data_dir=tmp_path).source
    write_idx(tmp_path / "system" / "fashion-mnist")
    assert "system" in datasets.load("fashion-mnist").source


def test_idx_files_in_the_data_directory_itself_are_not_taken_for_any_name(tmp_path):
    folder = write_idx(tmp_path / "files")
    with pytest.raises(DataError, match="give its path as name"):
        datasets.load("mnist", data_dir=folder)
    assert len(datasets.load(folder)) == 18
    assert len(datasets.load("fashion-mnist", data_dir=write_idx(tmp_path / "fashion-mnist"))) == 18


def test_missing_data_say_where_they_were_looked_for_and_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("BCFL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError) as caught:
        datasets.load("fashion-mnist", data_dir=tmp_path)
    message = str(caught.value)
    assert f"{tmp_path}, {tmp_path / 'nowhere'} (doesn't exist)" in message
    assert "apt-get install dataset-fashion-mnist" in message
    assert "BCFL_DATA" in message


@pytest.mark.parametrize(
    ("wrong", "meant"), [("optdigit", "optdigits"), ("fashion_mnist", "fashion-mnist")]
)
def test_a_misspelt_name_gets_the_nearest(wrong, meant):
    with pytest.raises(DataError, match=f"{wrong}.* Did you mean '{meant}'"):
        datasets.load(wrong)


def test_own_names_are_suggested_too(tmp_path):
    write_npz(tmp_path / "weather.npz")
    with pytest.raises(DataError, match="Did you mean 'weather'"):
        datasets.load("wether", data_dir=tmp_path)


@pytest.mark.parametrize("name", ["optdigits", "mnist"])
def test_a_data_directory_that_does_not_exist(tmp_path, name):
    with pytest.raises(DataError, match=r"data_dir must be an existing directory, got .*nowhere"):
        datasets.load(name, data_dir=tmp_path / "nowhere")
    with pytest.raises(DataError, match="data_dir"):
        datasets.available(data_dir=tmp_path / "nowhere")


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match=r"gone\.npz doesn't exist"):
        datasets.load(tmp_path / "gone.npz")


def test_available_lists_known_and_own_data(tmp_path):
    write_npz(tmp_path / "weather.npz")
    write_npz(tmp_path / "not_samples.npz", x_train=None)
    write_idx(tmp_path / "letters")
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    (tmp_path / "bare.npz").write_bytes(BARE.getvalue())
    infos = {info.name: info for info in datasets.available(data_dir=tmp_path)}
    assert list(infos) == ["fashion-mnist", "letters", "mnist", "optdigits", "weather"]
    assert {name for name, info in infos.items() if info.found} == {
        "letters",
        "optdigits",
        "weather",
    }
    assert "apt-get install dataset-fashion-mnist" in infos["fashion-mnist"].where
    for name in ("letters", "weather"):
        assert datasets.load(name, data_dir=tmp_path).source.endswith(infos[name].where)


def test_listing_and_importing_leave_scikit_learn_alone():
    import subprocess
    import sys

    code = (
        "import sys; from experiments import datasets, partitions, models;"
        "from bcfl.analysis import metrics;"
        "datasets.available(); print('sklearn' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


# Broken files

BARE = io.BytesIO()
np.save(BARE, np.arange(3))


def break_file(path, change):
    path.write_bytes(change(path.read_bytes()))


def test_wrong_magic_number(tmp_path):
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
            r"truncated: its head states \(4,\), 12 bytes in all, got 11",
        ),
        (lambda content: content[:6], "truncated: its head takes 8 bytes, got 6"),
        (lambda content: content + b"x", "too long"),
    ],
)
def test_idx_file_of_the_wrong_length(tmp_path, change, message):
    path = tmp_path / "file"
    path.write_bytes(change(idx_bytes(np.arange(4))))
    with pytest.raises(DataError, match=message):
        read_idx(path, 1)


@pytest.mark.parametrize("change", [lambda content: content[:-9], lambda content: b"no gzip"])
def test_broken_gzip_names_the_file(tmp_path, change):
    folder = write_idx(tmp_path / "mine")
    break_file(folder / "t10k-images-idx3-ubyte.gz", change)
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz can't be read"):
        datasets.load(folder)


def test_a_missing_idx_file_is_named(tmp_path):
    folder = write_idx(tmp_path / "mine")
    (folder / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataError, match="lacks the training labels: train-labels-idx1-ubyte"):
        datasets.load("mine", data_dir=tmp_path)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken", BARE.getvalue()])
def test_broken_archive(tmp_path, content):
    path = tmp_path / "own.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"own\.npz can't be read"):
        datasets.load("own", data_dir=tmp_path)


def test_a_damaged_member_of_an_archive(tmp_path):
    path = write_npz(tmp_path / "own.npz")
    content = bytearray(path.read_bytes())
    content[content.index(b"x_train") + 200] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"own\.npz can't be read"):
        datasets.load(path)


def test_pickled_objects_are_never_opened(tmp_path):
    path = write_npz(tmp_path / "own.npz", x_train=np.array([{}] * 12, dtype=object))
    with pytest.raises(DataError, match="plain arrays"):
        datasets.load(path)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [({"x_train": None}, "lacks x_train"), ({"y_test": None}, "lacks y_test")],
)
def test_archive_that_lacks_an_array(tmp_path, changes, missing):
    with pytest.raises(DataError, match=missing):
        datasets.load(write_npz(tmp_path / "own.npz", **changes))


# Arrays that can't be used

INPUTS = np.linspace(0, 1, 12).reshape(6, 2)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def with_nan():
    inputs = INPUTS.copy()
    inputs[3, 1] = np.nan
    return inputs


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (with_nan(), LABELS, "finite"),
        (np.full((6, 2), np.inf), LABELS, "finite"),
        (INPUTS.astype(str), LABELS, "real numbers"),
        (INPUTS * 1j, LABELS, "real numbers"),
        (INPUTS, LABELS.astype(float), "labels must be integers 0 to k - 1, got type float64"),
        (INPUTS, LABELS + 1, r"integers 0 to k - 1.* got 3 distinct ones: 1, 2, 3"),
        (INPUTS, LABELS - 1, "integers 0 to k - 1"),
        (INPUTS, LABELS * 1000, "integers 0 to k - 1"),
        (INPUTS, LABELS[:, None], r"targets \(samples,\)"),
        (INPUTS, LABELS[:5], "same length"),
        (INPUTS[:, 0], LABELS, r"inputs must be \(samples, ...\)"),
        (INPUTS[:0], LABELS[:0], "at least one sample"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(inputs, labels, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays("bad", (inputs, labels))


def test_parts_must_agree_in_shape():
    with pytest.raises(DataError, match="agree in shape"):
        Dataset.from_arrays("bad", (INPUTS, LABELS), (INPUTS[:, :1], LABELS))


def test_a_class_may_have_no_sample_where_the_number_of_classes_is_given():
    sparse = Dataset("sparse", INPUTS.astype(np.float32), LABELS.astype(np.int64), num_classes=5)
    assert sparse.num_classes == 5
    with pytest.raises(DataError, match="targets must be 0 to 1"):
        Dataset("few", INPUTS.astype(np.float32), LABELS.astype(np.int64), num_classes=2)
    with pytest.raises(DataError, match="float32"):
        Dataset("wide", INPUTS, LABELS, num_classes=3)


@pytest.mark.parametrize(
    ("raw", "scaled"),
    [
        (np.array([[0], [51], [255]], dtype=np.uint8), [0, 0.2, 1]),
        (np.array([[0], [3], [15]], dtype=np.uint8), [0, 3 / 255, 15 / 255]),
        (np.array([[0.25], [0.5], [0.75]]), [0.25, 0.5, 0.75]),
        (np.array([[-1.0], [0.0], [3.0]]), [0, 0.25, 1]),
        (np.array([[10], [20], [30]], dtype=np.int32), [0, 0.5, 1]),
        (np.array([[7.0], [7.0], [7.0]]), [0, 0, 0]),
        (np.array([[False], [True], [True]]), [0, 1, 1]),
    ],
)
def test_inputs_are_scaled_to_the_unit_interval(raw, scaled):
    made = Dataset.from_arrays("raw", (raw, np.array([0, 1, 2])))
    np.testing.assert_allclose(made.inputs[:, 0], scaled, rtol=1e-6)


def test_scaling_uses_one_range_for_training_and_test():
    train, test = np.array([[0.0], [10.0]]), np.array([[5.0], [20.0]])
    made = Dataset.from_arrays("raw", (train, np.array([0, 1])), (test, np.array([0, 1])))
    np.testing.assert_allclose(made.inputs[:, 0], [0, 0.5, 0.25, 1])


@pytest.mark.parametrize(
    ("shape", "stored"),
    [
        ((2, 6, 5), (2, 1, 6, 5)),
        ((2, 6, 5, 3), (2, 3, 6, 5)),
        ((2, 6, 5, 1), (2, 1, 6, 5)),
        ((2, 3, 6, 5), (2, 3, 6, 5)),
        ((2, 7), (2, 7)),
    ],
)
def test_images_become_channels_first(shape, stored):
    raw = np.random.default_rng(0).random(shape)
    made = Dataset.from_arrays("images", (raw, np.array([0, 1])))
    assert made.inputs.shape == stored
    if shape == (2, 6, 5, 3):
        np.testing.assert_allclose(made.inputs[1, 2], raw[1, :, :, 2], rtol=1e-6)


@pytest.mark.skipif(not DEBIAN.is_dir(), reason=f"dataset-fashion-mnist is not in {DEBIAN}")
def test_real_fashion_mnist():
    fashion = datasets.load(DEBIAN)
    assert fashion.inputs.shape == (70000, 1, 28, 28)
    assert np.bincount(fashion.targets).tolist() == [7000] * 10
    assert fashion.targets[:5].tolist() == [9, 0, 0, 3, 0]
    # Published mean and deviation of the training images.
    assert fashion.inputs[:60000].mean() == pytest.approx(0.2860, abs=1e-4)
    assert fashion.inputs[:60000].std() == pytest.approx(0.3530, abs=1e-4)


REAL = os.environ.get("BCFL_DATA", "")


@pytest.mark.skipif(
    not (REAL and (Path(REAL) / "usps.npz").is_file()), reason="BCFL_DATA has no usps.npz"
)
def test_real_usps():
    usps = datasets.load("usps", data_dir=REAL)
    assert usps.inputs.shape == (9298, 1, 16, 16)
    assert usps.num_native_test == 2007
