"""Small data sets as files."""

import gzip
import struct

import numpy as np
import pytest

from experiments.datasets import catalogue


@pytest.fixture(autouse=True)
def only_given_places(monkeypatch, tmp_path):
    monkeypatch.delenv("BCFL_DATA", raising=False)
    monkeypatch.setattr(catalogue, "SYSTEM_FOLDER", tmp_path / "system")


def encoded(array):
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def drawn(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size=(count, 5, 4), dtype=np.uint8)


@pytest.fixture
def idx_bytes():
    return encoded


@pytest.fixture
def images():
    return drawn


@pytest.fixture
def write_idx():
    def write(folder, packed=True, dot="-"):
        folder.mkdir(parents=True)
        labels = np.arange(12) % 3
        arrays = {
            f"train-images{dot}idx3-ubyte": drawn(12),
            f"train-labels{dot}idx1-ubyte": labels,
            f"t10k-images{dot}idx3-ubyte": drawn(6, seed=1),
            f"t10k-labels{dot}idx1-ubyte": labels[:6],
        }
        for name, array in arrays.items():
            content = encoded(array)
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)
        return folder

    return write


@pytest.fixture
def write_npz():
    def write(path, **changes):
        arrays = {"x_train": drawn(12), "y_train": np.arange(12) % 3}
        arrays |= {"x_test": drawn(6, seed=1), "y_test": np.arange(6) % 3}
        arrays |= changes
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
        return path

    return write
