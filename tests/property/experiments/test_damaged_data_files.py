"""Data files that are cut off, altered or made up are refused by `DataError`, or hold data."""

import gzip
import io
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import datasets
from experiments.datasets import DataError, Dataset
from experiments.datasets.formats.idx import read_idx

RANDOM = np.random.default_rng(0)
LABELS = np.arange(12) % 3
ARRAYS = {"x_train": RANDOM.random((12, 3)).astype(np.float32), "y_train": LABELS}
IMAGES = RANDOM.integers(0, 256, (12, 4, 4))


def archive(write):
    file = io.BytesIO()
    write(file, **ARRAYS)
    return file.getvalue()


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


CONTENTS = {
    "a.npz": archive(np.savez),
    "compressed.npz": archive(np.savez_compressed),
    "train-images-idx3-ubyte": idx(IMAGES),
    "train-images-idx3-ubyte.gz": gzip.compress(idx(IMAGES), mtime=0),
}


@st.composite
def damaged(draw, content):
    """Bytes with flipped bits, a part cut out, put in or overwritten, or cut off, or made up."""
    place = draw(st.integers(0, len(content) - 1))
    length = draw(st.integers(1, 16))
    match draw(st.sampled_from(["end", "flip", "cut", "insert", "overwrite", "made up"])):
        case "end":
            return content[:place]
        case "flip":
            flipped = content[place] ^ (1 << draw(st.integers(0, 7)))
            return content[:place] + bytes([flipped]) + content[place + 1 :]
        case "cut":
            return content[:place] + content[place + length :]
        case "insert":
            return content[:place] + draw(st.binary(min_size=1, max_size=16)) + content[place:]
        case "overwrite":
            return content[:place] + b"\xff" * length + content[place + length :]
    return draw(st.binary(max_size=64))


def check(tmp, name, content):
    """Loading gives a valid data set or a `DataError`; listing what there is goes on."""
    path = tmp / name
    path.write_bytes(content)
    with suppress(DataError):
        if name.endswith(".npz"):
            found = datasets.load(path)
            assert isinstance(found, Dataset)
            assert np.isfinite(found.inputs).all()
        else:
            assert read_idx(path, 3).dtype == np.uint8
    assert datasets.available(tmp)


def examples(count, name, tmp_path):
    @settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @given(damaged(CONTENTS[name]))
    def run(content):
        check(tmp_path, name, content)

    run()


@pytest.mark.parametrize("name", CONTENTS)
def test_damaged_files_are_refused_or_hold_data(tmp_path, name):
    examples(25, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTENTS)
def test_more_damaged_files_are_refused_or_hold_data(tmp_path, name):
    examples(5000, name, tmp_path)


@pytest.mark.parametrize("name", ["a.npz", "train-images-idx3-ubyte.gz"])
def test_files_cut_off_at_any_byte_are_refused(tmp_path, name):
    for length in range(0, len(CONTENTS[name]), 1 if name.endswith("gz") else 7):
        (tmp_path / name).write_bytes(CONTENTS[name][:length])
        with pytest.raises(DataError):
            datasets.load(tmp_path / name) if name == "a.npz" else read_idx(tmp_path / name, 3)


@pytest.mark.parametrize("counts", [(2**32 - 1,) * 3, (2**32 - 1, 0, 1), (12, 4, 2**31)])
def test_a_header_of_huge_counts_is_refused_without_reserving_memory(tmp_path, counts):
    path = tmp_path / "huge-idx3-ubyte"
    path.write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", *counts) + bytes(192))
    with pytest.raises(DataError, match="its header states"):
        read_idx(path, 3)


def test_an_archive_whose_header_counts_too_much_is_refused(tmp_path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000000, 3), }"
    padded = header + b" " * (118 - len(header) - 1) + b"\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + bytes(144)
    with zipfile.ZipFile(tmp_path / "huge.npz", "w") as file:
        file.writestr("x_train.npy", member)
        content = io.BytesIO()
        np.save(content, LABELS)
        file.writestr("y_train.npy", content.getvalue())
    with pytest.raises(DataError, match="cannot be read"):
        datasets.load(tmp_path / "huge.npz")
