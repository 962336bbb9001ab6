"""CIFAR-10: batches as pickles and as binary records."""

import os
import pickle

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError

BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def batch(seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (10, 3072), dtype=np.uint8)
    return pixels, np.random.default_rng(seed).permutation(10)


@pytest.fixture(params=["py", "bin"])
def written(tmp_path, request):
    folder = tmp_path / f"cifar-10-batches-{request.param}"
    folder.mkdir()
    for seed, name in enumerate(BATCHES):
        pixels, labels = batch(seed)
        if request.param == "py":
            content = {b"batch_label": b"one", b"labels": labels.tolist(), b"data": pixels}
            (folder / name).write_bytes(pickle.dumps(content, protocol=2))
        else:
            records = np.concatenate([labels[:, None].astype(np.uint8), pixels], 1)
            (folder / f"{name}.bin").write_bytes(records.tobytes())
    return folder


def test_both_forms_are_read(tmp_path, written):
    for cifar in (
        datasets.load("cifar-10", data_dir=tmp_path),
        datasets.load("cifar-10", data_dir=written),
        datasets.load(written),
    ):
        assert (len(cifar), cifar.num_native_test, cifar.input_shape) == (60, 10, (3, 32, 32))
        for seed in (0, 5):
            pixels, labels = batch(seed)
            rows = slice(10 * seed, 10 * seed + 10)
            # Red comes first, row by row.
            np.testing.assert_allclose(cifar.inputs[rows].reshape(10, -1) * 255, pixels, atol=1e-4)
            assert cifar.targets[rows].tolist() == labels.tolist()


def test_names_of_classes_are_read_where_they_are_there(written):
    assert datasets.load(written).class_names is None
    names = [f"class {number}" for number in range(10)]
    if written.name.endswith("bin"):
        (written / "batches.meta.txt").write_text("\n".join([*names, "", ""]))
    else:
        content = {b"num_vis": 3072, b"label_names": [name.encode() for name in names]}
        (written / "batches.meta").write_bytes(pickle.dumps(content, protocol=2))
    assert datasets.load(written).class_names == tuple(names)


@pytest.mark.parametrize(
    "content", [b"", pickle.dumps({b"label_names": [1]}), pickle.dumps(os.sep)]
)
def test_names_of_classes_that_cannot_be_read(written, content):
    if written.name.endswith("bin"):
        pytest.skip("not pickled")
    (written / "batches.meta").write_bytes(content)
    with pytest.raises(DataError, match=r"batches\.meta cannot be read as names of classes"):
        datasets.load(written)


def test_a_batch_that_is_missing_or_damaged(written):
    path = next(written.glob("data_batch_4*"))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match=r"data_batch_4.* cannot be read"):
        datasets.load(written)
    path.unlink()
    with pytest.raises(DataError, match="lacks data_batch_4"):
        datasets.load(written)
    next(written.glob("data_batch_1*")).unlink()
    with pytest.raises(DataError, match="lacks data_batch_1"):
        datasets.load("cifar-10", written.parent)


def test_an_archive_of_the_arrays_that_keras_has(tmp_path, write_npz):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    labels = (np.arange(12) % 10)[:, None].astype(np.uint8)
    write_npz(tmp_path / "cifar10.npz", x_train=images, y_train=labels, x_test=None, y_test=None)
    cifar = datasets.load("cifar-10", tmp_path)
    assert (cifar.input_shape, cifar.num_classes) == ((3, 32, 32), 10)
    assert cifar.targets.tolist() == labels[:, 0].tolist()
    infos = {info.name: info for info in datasets.available(tmp_path)}
    assert infos["cifar-10"].where == infos["cifar10"].where
    assert infos["cifar10"].description == "local data, also as cifar-10"


def test_a_label_that_cifar_10_does_not_have(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in BATCHES:
        records = np.zeros((10, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(10) + (name == "data_batch_3")
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    with pytest.raises(DataError, match=r"data_batch_3\.bin: labels must be 0 to 9, got 10"):
        datasets.load("cifar-10", tmp_path)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_pickles_that_would_run_code_are_refused(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if written.name.endswith("bin"):
        pytest.skip("not pickled")
    content = {b"data": Harmful(), b"labels": []}
    (written / "data_batch_1").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(DataError, match="mkdir, not only arrays"):
        datasets.load(written)
    assert not (tmp_path / "harm").exists()


def test_a_batch_of_cifar_100_is_told_by_what_it_lacks(tmp_path):
    content = {b"data": np.zeros((1, 3072), np.uint8), b"fine_labels": [0]}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=r"it lacks labels, and holds data, fine_labels"):
        datasets.load(tmp_path)


def test_a_batch_that_is_no_dictionary(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(DataError, match=r"must hold a dictionary with data and labels, got \[1, 2"):
        datasets.load(tmp_path)
