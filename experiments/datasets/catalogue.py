"""Registry and search path of data sets; nothing is ever downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bcfl.methods import nearest
from experiments.datasets.dataset import DataError, Dataset
from experiments.datasets.idx import holds_idx, load_idx
from experiments.datasets.npz import holds_samples, load_npz

VARIABLE = "BCFL_DATA"
SYSTEM_FOLDER = Path("/usr/share/datasets")
OPTDIGITS = "optdigits"
OPTDIGITS_SOURCE = "optical digits of UCI as shipped with scikit-learn"


@dataclass(frozen=True)
class KnownDataset:
    """A data set known by name.

    Attributes:
        description: short description.
        folders: possible folders of its IDX files below a data directory.
        hint: how to obtain it.
    """

    description: str
    folders: tuple[str, ...]
    hint: str


IDX_FILES = "put its four IDX files (train-images-idx3-ubyte.gz, ...) into"
KNOWN = {
    "fashion-mnist": KnownDataset(
        "70,000 images of clothing, 28x28, 10 classes",
        ("fashion-mnist", "FashionMNIST/raw"),
        f"apt-get install dataset-fashion-mnist, or {IDX_FILES} DATA_DIR/fashion-mnist",
    ),
    "mnist": KnownDataset(
        "70,000 handwritten digits, 28x28, 10 classes",
        ("mnist", "MNIST/raw"),
        f"{IDX_FILES} DATA_DIR/mnist, or mnist.npz (x_train, y_train, ...) into DATA_DIR",
    ),
}


@dataclass(frozen=True)
class DatasetInfo:
    """Entry of the list of data sets.

    Attributes:
        name: name to load it by.
        description: short description.
        where: file or folder that it is read from, or how to obtain it.
        found: whether it is available locally.
    """

    name: str
    description: str
    where: str
    found: bool


def load(name: str | Path, data_dir: str | Path | None = None) -> Dataset:
    """Load a data set.

    A name is searched as `NAME.npz`, and as a folder `NAME` of IDX files or with one `.npz` file,
    in `data_dir`, then in the directory of the environment variable BCFL_DATA, then in
    /usr/share/datasets. `optdigits` is part of scikit-learn.

    Args:
        name: `optdigits`, `fashion-mnist`, `mnist`, the name of a local file or folder, or a path
            to an `.npz` file or to a folder.
        data_dir: directory that is searched first.

    Raises:
        DataError: the data set is not found (the message lists the searched directories), the data
            directory does not exist, or the files are corrupt.
    """
    places = _places(data_dir)
    if isinstance(name, Path) or os.sep in name or name.endswith(".npz"):
        return _load_path(Path(name).expanduser())
    if name == OPTDIGITS:
        return _optdigits()
    for place in places:
        for path in _candidates(name, place):
            if (readable := _readable(path)) is not None:
                return _read(name, readable)
    raise DataError(_not_found(name, places))


def available(data_dir: str | Path | None = None) -> tuple[DatasetInfo, ...]:
    """List the known data sets and those in the data directories, sorted by name.

    Args:
        data_dir: directory that is searched besides BCFL_DATA and /usr/share/datasets.

    Raises:
        DataError: `data_dir` does not exist.
    """
    places = _places(data_dir)
    infos = {
        OPTDIGITS: DatasetInfo(
            OPTDIGITS, "1,797 handwritten digits, 8x8, 10 classes", OPTDIGITS_SOURCE, True
        )
    }
    for place in places:
        for name, path in _own(place):
            description = KNOWN[name].description if name in KNOWN else "local data"
            infos.setdefault(name, DatasetInfo(name, description, str(path), True))
    for name, known in KNOWN.items():
        infos.setdefault(name, DatasetInfo(name, known.description, known.hint, False))
    return tuple(infos[name] for name in sorted(infos))


def _optdigits() -> Dataset:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Dataset(
        name=OPTDIGITS,
        inputs=(digits.images / 16).astype(np.float32)[:, None],
        targets=digits.target.astype(np.int64),
        num_classes=10,
        source=OPTDIGITS_SOURCE,
    )


def _places(data_dir: str | Path | None) -> list[Path]:
    places = [SYSTEM_FOLDER]
    if os.environ.get(VARIABLE):
        places.insert(0, Path(os.environ[VARIABLE]).expanduser())
    if data_dir is not None:
        path = Path(data_dir).expanduser()
        if not path.is_dir():
            raise DataError(f"data_dir must be an existing directory, got {path}")
        places.insert(0, path)
    return places


def _candidates(name: str, place: Path) -> list[Path]:
    folders = KNOWN[name].folders if name in KNOWN else (name,)
    paths = [place / f"{name}.npz", *(place / folder for folder in folders)]
    return [*paths, place] if place.name == name else paths


def _readable(path: Path) -> Path | None:
    """Path to read: an archive, a folder of IDX files, or the only archive of a folder."""
    if path.is_file() or holds_idx(path):
        return path
    archives = sorted(path.glob("*.npz")) if path.is_dir() else []
    return archives[0] if len(archives) == 1 else None


def _read(name: str, path: Path) -> Dataset:
    return load_idx(name, path) if path.is_dir() else load_npz(name, path)


def _load_path(path: Path) -> Dataset:
    readable = _readable(path)
    if readable is None:
        problem = "holds neither IDX files nor one .npz file" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {problem}; give an .npz file, or a folder of IDX files")
    return _read(path.name if path.is_dir() else path.stem, readable)


def _own(place: Path) -> Iterator[tuple[str, Path]]:
    """Names and paths of the data sets in a data directory."""
    for name in KNOWN:
        for path in _candidates(name, place):
            if (readable := _readable(path)) is not None:
                yield name, readable
    for path in sorted(place.iterdir()) if place.is_dir() else []:
        if path.suffix == ".npz" and holds_samples(path):
            yield path.stem, path
        elif path.is_dir() and (readable := _readable(path)) is not None:
            yield path.name, readable


def _not_found(name: str, places: list[Path]) -> str:
    missing = {place: "" if place.is_dir() else " (does not exist)" for place in places}
    searched = ", ".join(f"{place}{note}" for place, note in missing.items())
    looked = f"Searched {name}.npz and a folder {name} in: {searched}."
    names = {OPTDIGITS, *KNOWN, *(own for place in places for own, _ in _own(place))}
    near = nearest(name, sorted(names))
    if name not in KNOWN and near:
        return f"dataset {name!r} was not found.{near} {looked}"
    if any(holds_idx(place) for place in places):
        looked += " To read IDX files in a data directory itself, give its path as name."
    hint = KNOWN[name].hint if name in KNOWN else f"put {name}.npz (x_train, y_train) into DATA_DIR"
    where = f"DATA_DIR is data_dir (--data-dir) or {VARIABLE}"
    return f"dataset {name!r} was not found. {looked} To obtain it: {hint}; {where}."
