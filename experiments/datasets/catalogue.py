"""Registry and search path of data sets; nothing is ever downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Unpack

from bcfl.methods import imported, made_by, misfit, reference_of, registered
from bcfl.runtime import as_path, check_name, nearest
from experiments.datasets.arrays import SCALING, Scaling, is_stated
from experiments.datasets.built_in import BUILT_IN
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError, check_options, domains_in_words
from experiments.datasets.formats.files import ending_of, is_file, is_folder
from experiments.datasets.formats.idx import holds_idx
from experiments.datasets.formats.recognition import (
    ENDINGS,
    NO_SCALING,
    files_of,
    load_path,
    named_files,
    plain_name,
    readable,
    refusal,
)
from experiments.datasets.known import KNOWN, SIZED, KnownDataset, ends_with, known_dataset

VARIABLE = "BCFL_DATA"
SYSTEM_FOLDER = Path("/usr/share/datasets")
OWN = (
    "a Dataset of experiments.datasets, such as from_numpy, from_torch and from_huggingface make, "
    "or a function without arguments that makes one"
)


@dataclass(frozen=True)
class DatasetInfo:
    """Entry of the list of data sets.

    Attributes:
        name: name to load it by.
        description: short description.
        where: file or folder that it is read from, the object of a package, or how to obtain it.
        found: whether it is available locally.
        lacks: domains of it that are not available locally.
    """

    name: str
    description: str
    where: str
    found: bool
    lacks: tuple[str, ...] = ()

    @property
    def gap(self) -> str:
        """What is not available locally, in words; empty where nothing is missing."""
        if not self.found:
            return self.name
        return f"{domains_in_words(self.lacks)} of {self.name}" if self.lacks else ""


def load(
    name: str | Path, data_dir: str | Path | None = None, **scaling: Unpack[Scaling]
) -> Dataset:
    """Load a data set.

    A name is searched in `data_dir`, then in the directory of the environment variable BCFL_DATA,
    then in /usr/share/datasets: known names at the places of their official files, all others as a
    file `NAME.npz`, `.jsonl`, `.jsonl.gz`, `.tsv`, `.tsv.gz`, `.mat` or `.zip`, or as a folder
    `NAME` of IDX files, batches of CIFAR-10, JSON files of LEAF, reviews, images by class, or with
    one `.npz` file. These endings may be in upper case.
    `optdigits` is part of scikit-learn, and `rendered-digits` are drawn.

    Args:
        name: a known name (see `experiments.datasets.available`), the name of a local file or
            folder, a path, a name that a package registers, or `module:object` of a `Dataset` or of
            a function that makes one. The name of a file in the working directory, with its ending,
            is a path.
        data_dir: directory that is searched first.
        **scaling: of a file or folder of your own, `highest=NUMBER` divides inputs, and
            `scaled=False` keeps them; see `experiments.datasets.Dataset.from_arrays`.

    Returns:
        The data set, with `inputs` (samples, ...) as float32 and `targets` (samples,) as int64.

    Raises:
        DataError: the data set is not found (the message lists the searched directories), the data
            directory does not exist, the files are corrupt, or `highest` or `scaled` is given for a
            data set that has a scale of its own.
        TypeError: `name` is neither text nor a path, or `data_dir` no path.
        UnknownObjectError: `module:object` cannot be imported, or is of another kind.

    Example:
        >>> from experiments import datasets
        >>> digits = datasets.load("optdigits")
        >>> digits.input_shape, digits.num_outputs
        ((1, 8, 8), 10)
    """
    return located(name, data_dir, **scaling)()


def located(
    name: str | Path, data_dir: str | Path | None = None, **scaling: Unpack[Scaling]
) -> Callable[[], Dataset]:
    """What reads a data set; nothing is read or imported yet.

    Args:
        name: as of `load`.
        data_dir: directory that is searched first.
        **scaling: as of `load`.

    Raises:
        DataError: the data set is not found, the data directory does not exist, or the data set has
            a scale of its own.
    """
    check_options(str(name), scaling, SCALING)
    places = _places(data_dir)
    if (path := _as_path(name)) is not None:
        return partial(load_path, plain_name(path), path, **scaling)
    name = str(name)
    if name in BUILT_IN:
        return _as_it_is(BUILT_IN[name].load, name, scaling)
    for place in places:
        if (found := _found(name, place)) is not None:
            known = known_dataset(name)
            if known is None:
                return partial(load_path, name, found, **scaling)
            return _as_it_is(partial(known.load, name, found), name, scaling)
    reference = reference_of(name, "datasets")
    if reference is not None:
        return _as_it_is(partial(_of_reference, reference), name, scaling)
    raise DataError(_not_found(name, places))


def _as_path(name: str | Path) -> Path | None:
    """The path that is given in place of a name; None if it is a name."""
    if not isinstance(name, Path):
        check_name("data set", name)
        if not name:
            raise DataError("name must be that of a data set, or a path, got ''")
        if name in (os.curdir, os.pardir):
            raise DataError(
                f"name must be that of a data set, or a path, got {name!r}; this folder itself is "
                f"read by its path {name}{os.sep}"
            )
        is_there = "." in name and is_file(Path(name))
        if os.sep not in name and not ending_of(name, (".npz",)) and not is_there:
            return None
    return Path(name).expanduser()


def _as_it_is(load: Callable[[], Dataset], name: str, scaling: Scaling) -> Callable[[], Dataset]:
    """What reads a data set that has a scale of its own."""
    if is_stated(scaling):
        raise DataError(f"dataset {name!r}: {NO_SCALING}")
    return load


def _of_reference(reference: str) -> Dataset:
    found = imported(reference, "dataset", OWN)
    makes = callable(found) and not isinstance(found, Dataset)
    made = made_by(reference, "dataset", found) if makes else found
    if not isinstance(made, Dataset):
        raise misfit("dataset", reference, made, OWN)
    return made


def available(data_dir: str | Path | None = None) -> tuple[DatasetInfo, ...]:
    """List the known data sets, those in the data directories and of packages, sorted by name.

    Args:
        data_dir: directory that is searched besides BCFL_DATA and /usr/share/datasets.

    Raises:
        DataError: `data_dir` does not exist.
    """
    places = _places(data_dir)
    infos = {
        name: DatasetInfo(name, own.description, own.source, True) for name, own in BUILT_IN.items()
    }
    for place in places:
        for name, path in _own(place):
            if name not in infos:
                other = next((one.name for one in infos.values() if one.where == str(path)), None)
                infos[name] = _info(name, path, other)
    for name, reference in registered("datasets").items():
        infos.setdefault(name, DatasetInfo(name, f"of a package: {reference}", reference, True))
    for name, known in KNOWN.items():
        infos.setdefault(name, DatasetInfo(name, known.description, known.hint, False))
    return tuple(infos[name] for name in sorted(infos))


def _info(name: str, path: Path, other: str | None) -> DatasetInfo:
    """Entry of a data set, which `other` names as well if it is given."""
    known = known_dataset(name)
    if known is None:
        also = f", also as {other}" if other else ""
        return DatasetInfo(name, f"local data{also}", str(path), True)
    try:
        lacks = known.lacks(path)
    except (DataError, OSError):  # told when it is loaded
        lacks = ()
    return DatasetInfo(name, known.description, str(path), True, lacks)


def _places(data_dir: str | Path | None) -> list[Path]:
    places = [SYSTEM_FOLDER]
    if os.environ.get(VARIABLE):
        places.insert(0, Path(os.environ[VARIABLE]).expanduser())
    if data_dir is not None:
        path = as_path("data_dir", data_dir).expanduser()
        if not is_folder(path):
            raise DataError(f"data_dir must be an existing directory, got {path}")
        places.insert(0, path)
    return places


def _found(name: str, place: Path) -> Path | None:
    """File or folder of a data set in a data directory."""
    known = known_dataset(name)
    if known is None:
        paths = [*files_of(name, place), place / name, *([place] if place.name == name else [])]
        return next((path for path in paths if readable(path) is not None), None)
    there = (path for path in _expected(name, known, place) if is_file(path) or is_folder(path))
    return next((path for path in there if known.holds(path)), None)


def _expected(name: str, known: KnownDataset, place: Path) -> list[Path]:
    """Where the files of a known data set may be in a data directory."""
    paths = [place / f"{name}.npz", *(place / path for path in known.paths)]
    return paths + [place] * any(ends_with(place, path) for path in (name, *known.paths))


def _own(place: Path) -> Iterator[tuple[str, Path]]:
    """Names and paths of the data sets in a data directory."""
    for name in (*KNOWN, *SIZED):
        if (path := _found(name, place)) is not None:
            yield name, path
    yield from ((name, path) for name, path in named_files(place) if known_dataset(name) is None)


def _not_found(name: str, places: list[Path]) -> str:
    known = known_dataset(name)
    if known is not None:
        return _known_not_found(name, known, places)
    if said := _in_working_directory(name) or _not_readable(name, places):
        return said
    looked = f"Searched {name}{' or '.join(ENDINGS)}, and a folder {name}, in: {_shown(places)}."
    names = {
        *BUILT_IN,
        *KNOWN,
        *registered("datasets"),
        *(own for place in places for own, _ in _own(place)),
    }
    if near := nearest(name, sorted(names)):
        return f"dataset {name!r} was not found.{near} {looked}"
    hint = (
        f"put {name}.npz (x_train, y_train) into DATA_DIR, or give a path, such as ./{name} (in a "
        "scenario, from the folder of its file)"
    )
    return _to_obtain(name, looked, hint, places)


def _known_not_found(name: str, known: KnownDataset, places: list[Path]) -> str:
    looked = f"Searched {name}.npz and a folder {name} in: {_shown(places)}."
    paths = [path for place in places for path in _expected(name, known, place)]
    partly = next(filter(None, map(known.incomplete, paths)), "")
    others = (path for place in places for path in files_of(name, place))
    if not partly and (other := next(filter(readable, others), None)) is not None:
        partly = f"{other} is none of its files; as data of your own, it is read by its path"
    return _to_obtain(name, f"{partly}. {looked}" if partly else looked, known.hint, places)


def _to_obtain(name: str, looked: str, hint: str, places: list[Path]) -> str:
    if any(holds_idx(place) for place in places):
        looked += " To read IDX files in a data directory itself, give its path as name."
    where = f"DATA_DIR is data_dir (--data-dir) or {VARIABLE}"
    return f"dataset {name!r} was not found. {looked} To obtain it: {hint}; {where}."


def _shown(places: list[Path]) -> str:
    return ", ".join(
        f"{place}{'' if is_folder(place) else ' (does not exist)'}" for place in places
    )


def _in_working_directory(name: str) -> str:
    """Where a data set of this name is in the working directory, in words."""
    path = next(filter(readable, [Path(name), *files_of(name, Path())]), None)
    if path is None:
        return ""
    kind = "folder" if is_folder(path) else "file"
    return (
        f"dataset {name!r} was not found among names; the {kind} {path} in the working directory "
        f"is read by its path: ./{path} (in a scenario, from the folder of its file)"
    )


def _not_readable(name: str, places: list[Path]) -> str:
    """Why a file or folder of this name is not read, in words."""
    paths = (place / name for place in (*places, Path()))
    path = next((path for path in paths if is_file(path) or is_folder(path)), None)
    return "" if path is None else f"dataset {name!r}: {refusal(path)}"
