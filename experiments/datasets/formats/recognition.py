"""Recognising the format of files and folders, and reading them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack
from zipfile import is_zipfile

from experiments.datasets.arrays import Scaling, is_stated
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.cifar import holds_cifar, load_cifar
from experiments.datasets.formats.files import (
    absent,
    ending_of,
    inside,
    is_file,
    is_folder,
    name_of,
    seen,
)
from experiments.datasets.formats.folders import from_folder, holds_images, holds_lists, load_lists
from experiments.datasets.formats.idx import holds_idx, load_idx
from experiments.datasets.formats.leaf import half_leaf, holds_leaf, load_leaf
from experiments.datasets.formats.mat import USPS, load_libsvm, load_mat
from experiments.datasets.formats.npz import holds_samples, holds_writers, load_npz
from experiments.datasets.formats.omniglot import holds_omniglot, load_omniglot
from experiments.datasets.formats.reviews import ENDINGS as REVIEW_ENDINGS
from experiments.datasets.formats.reviews import holds_reviews, load_reviews
from experiments.datasets.formats.tweets import LINES, holds_tweets, load_tweets

ENDINGS = (".npz", *REVIEW_ENDINGS, *LINES, ".mat", ".zip")
"""Of files that are found by their name without it, in any case."""
READ = (
    "give a file of arrays, .npz or .mat, of reviews (.jsonl), of tweets (.tsv, lines of a label "
    "and a text), or of Omniglot (.zip), or a folder of IDX files, of batches of CIFAR-10, of JSON "
    "files of LEAF, of reviews, or of images by class; tables, such as .csv, are read by pandas, "
    "and their columns, as other arrays, become a data set by experiments.datasets.from_numpy, "
    "which scenarios call by module:function"
)
"""What is read, for messages."""
NO_SCALING = (
    "highest and scaled are for an .npz or .mat file, IDX files or a folder of images; other data "
    "sets are read as they are published or made"
)
"""Of data sets whose values have a scale of their own."""


@dataclass(frozen=True)
class Format:
    """A format of files or folders.

    Attributes:
        holds: whether a path is of this format.
        load: reads it, from the name of the data set, the path, the number of classes if that is
            known, and, where it is scaled, the keywords of `Scaling`.
        is_scaled: whether its values may be scaled in different ways.
    """

    holds: Callable[[Path], bool]
    load: Callable[..., Dataset]
    is_scaled: bool = False


FORMATS = (
    Format(lambda path: _is_file(path, ".npz"), load_npz, True),
    Format(lambda path: _is_file(path, ".mat"), load_mat, True),
    Format(lambda path: is_file(path) and path.name == USPS, load_libsvm),
    Format(holds_idx, load_idx, True),
    Format(holds_cifar, load_cifar),
    Format(holds_leaf, lambda name, path, _: load_leaf(name, path)),
    Format(holds_reviews, lambda name, path, _: load_reviews(name, path)),
    Format(holds_tweets, lambda name, path, _: load_tweets(name, path)),
    Format(holds_lists, load_lists),
    Format(holds_omniglot, lambda name, path, _: load_omniglot(name, path)),
    Format(holds_images, lambda name, path, _, **how: from_folder(path, name, **how), True),
)


def readable(path: Path) -> Path | None:
    """Path to read: a file or folder of a known format, or the only archive of a folder.

    None where there is no such path, and where it cannot be looked at.
    """
    if _format(path) is not None:
        return path
    archives = _archives(path)
    return archives[0] if len(archives) == 1 else None


def load_path(
    name: str, path: Path, num_classes: int | None = None, **scaling: Unpack[Scaling]
) -> Dataset:
    """Load a file or folder.

    Args:
        name: name of the data set.
        path: of the file or folder.
        num_classes: number of classes of a published data set, one for each sample; by default
            as many as there are.
        **scaling: `highest` and `scaled`, see `experiments.datasets.Dataset.from_arrays`.

    Raises:
        DataError: it does not exist, its format is unknown or its values have a scale of their own,
            it is corrupt, or its labels are not those of the published data set.
    """
    found = readable(path)
    form = None if found is None else _format(found)
    if found is None or form is None:
        raise DataError(refusal(path))
    if is_stated(scaling) and not form.is_scaled:
        raise DataError(f"{found}: {NO_SCALING}")
    dataset = form.load(name, found, num_classes, **(scaling if form.is_scaled else {}))
    if num_classes is not None and (dataset.num_classes, dataset.label_sets) != (num_classes, None):
        kind = "classes" if dataset.label_sets is None else "labels, any number for a sample"
        raise DataError(
            f"{found}: {name} has {num_classes} classes, got {dataset.num_outputs} {kind}"
        )
    return dataset


def refusal(path: Path) -> str:
    """Why a path cannot be read, and what can, in words."""
    try:
        names = [one.name for one in inside(path)] if path.is_dir() else None
        if names is None and not path.exists():
            return f"{path} {absent(path)}"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror or error}"
    except DataError as error:
        return str(error)
    problem = _problem_of_file(path) if names is None else _problem_of_folder(path, names)
    return f"{path} {problem}; {READ}"


def _problem_of_file(path: Path) -> str:
    if not _is_file(path, ".zip"):
        return "is of no known format"
    return f"is {'an' if is_zipfile(path) else 'a damaged'} archive without images of Omniglot"


def _problem_of_folder(path: Path, names: Collection[str]) -> str:
    if archives := _archives(path):
        return f"holds {len(archives)} .npz files, of which the path of one is to be given"
    if any(name.startswith("emnist-") and "-ubyte" in name for name in names):
        return f"holds files of EMNIST, which load('emnist-letters', {str(path)!r}) and others read"
    return half_leaf(path).removeprefix(f"{path} ") or "holds no known format"


def named_files(folder: Path) -> list[tuple[str, Path]]:
    """Names and paths of what can be read in a folder, sorted by file name."""
    found = []
    for path in seen(folder):
        ending = ending_of(path.name, ENDINGS)
        if is_folder(path):
            found += [(path.name, inner)] if (inner := readable(path)) is not None else []
        elif ending == ".npz":
            found += [(path.stem, path)] if holds_samples(path) else []
        elif ending and readable(path) is not None:
            found.append((plain_name(path), path))
    return found


def files_of(name: str, folder: Path) -> list[Path]:
    """Files of a folder that have this name and one of the endings, in any case."""
    ends = {path: path.name[len(name) :] for path in seen(folder) if path.name.startswith(name)}
    there = [path for path, end in ends.items() if end.lower() in ENDINGS]
    return sorted(
        there, key=lambda one: (ENDINGS.index(ends[one].lower()), not ends[one].islower())
    )


def plain_name(path: Path) -> str:
    """Name of a data set in a file or folder, without the ending of the file."""
    if is_folder(path):
        return name_of(path)
    return path.name[: len(path.name) - len(ending_of(path.name, ENDINGS))]


def _archives(folder: Path) -> list[Path]:
    """Archives in a folder, without those of the writers of others."""
    there = [path for path in seen(folder) if ending_of(path.name, (".npz",))]
    return [path for path in there if not holds_writers(path)]


def _is_file(path: Path, ending: str) -> bool:
    return ending_of(path.name, (ending,)) != "" and is_file(path)


def _format(path: Path) -> Format | None:
    return next((one for one in FORMATS if one.holds(path)), None)
