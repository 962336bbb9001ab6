"""Loader of FEMNIST and Sent140 as LEAF writes them: JSON files of users."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import is_folder, seen, text_of
from experiments.datasets.formats.tweets import sentiment, word_numbers, word_vectors
from experiments.datasets.labels import whole_labels

PARTS = (
    ("data/train", "data/test"),
    ("train", "test"),
    ("data/all_data", None),
    ("all_data", None),
)
FEMNIST_CLASSES = 62
FEMNIST_SHAPE = (1, 28, 28)
KEYS = (b'"users"', b'"user_data"', b'"num_samples"')
"""One of them is near the beginning of a file of LEAF."""
BEGINNING = 4096
"""Bytes of the beginning."""
TEXT = 4
"""Place of the text among the fields of a tweet."""


def holds_leaf(folder: Path) -> bool:
    """Whether a folder holds JSON files of LEAF: `train` and `test`, or `all_data`."""
    return _parts(folder) is not None


def half_leaf(folder: Path) -> str:
    """What a folder with JSON files in one of its parts lacks of LEAF, in words."""
    for names in PARTS if _parts(folder) is None else ():
        wanted = [name for name in names if name]
        found = [name for name in wanted if _json_files(folder / name)]
        files = [path for name in found for path in _json_files(folder / name)]
        unreadable = next((path for path in files if _head(path) is None), None)
        if unreadable is not None:
            return f"{folder} has {unreadable.relative_to(folder)}, which cannot be read"
        odd = [name for name in found if not _is_leaf(folder / name)]
        if odd:
            return f"{folder} has JSON files in {odd[0]}, but none of LEAF, with user_data"
        if found:
            (other,) = set(wanted) - set(found)
            return f"{folder} has JSON files in {found[0]}, but none in {other}"
    return ""


@dataclass(frozen=True)
class Samples:
    """The samples of all users in the order of their names.

    Attributes:
        inputs: one per sample, as in the files.
        labels: one per sample, as in the files.
        users: (samples,) name of the user.
        num_native_test: samples at the end that LEAF has set aside for tests.
        source: the folder.
    """

    inputs: Sequence[Any]
    labels: Sequence[Any]
    users: Sequence[str]
    num_native_test: int
    source: Path


def load_leaf(name: str, folder: Path) -> Dataset:
    """Load FEMNIST or Sent140 (Caldas et al., 2018), whichever a folder holds.

    Args:
        name: name of the data set.
        folder: folder of LEAF with `train` and `test`, or `all_data`, or with `data` that has them.

    Raises:
        DataError: a file is missing or corrupt, or of another data set.
    """
    samples = read_users(folder)
    return _of_tweets(name, samples, word_numbers) if _is_text(samples) else _femnist(name, samples)


def load_leaf_vectors(name: str, folder: Path, vectors: Path) -> Dataset:
    """Load Sent140 as sequences of 25 pretrained word vectors.

    Args:
        name: name of the data set.
        folder: see `load_leaf`.
        vectors: file of word vectors, such as `glove.6B.300d.txt`.

    Raises:
        DataError: a file is missing or corrupt, or the samples are not strings.
    """
    samples = read_users(folder)
    if not _is_text(samples):
        raise DataError(f"{folder} must hold tweets, as Sent140 does")
    return _of_tweets(name, samples, lambda texts: word_vectors(texts, vectors))


def read_users(folder: Path) -> Samples:
    """Read all users of a folder; users keep one number in training and test files.

    Args:
        folder: see `load_leaf`.

    Raises:
        DataError: a file is missing or corrupt.
    """
    parts = _parts(folder)
    if parts is None:
        raise DataError(f"{folder} must hold JSON files in train and test, or in all_data")
    by_part = [_users(part) for part in parts]
    names = sorted({user for users in by_part for user, (_, y) in users.items() if y})
    inputs: list[Any] = []
    labels: list[Any] = []
    of_samples: list[str] = []
    sizes = []
    for users in by_part:
        before = len(labels)
        for user in names:
            x, y = users.get(user, ([], []))
            inputs.extend(x)
            labels.extend(y)
            of_samples += [user] * len(y)
        sizes.append(len(labels) - before)
    if not labels:
        raise DataError(f"{folder} holds no samples")
    num_test = sizes[1] if len(sizes) > 1 else 0
    return Samples(inputs, labels, of_samples, num_test, folder)


def _femnist(name: str, samples: Samples) -> Dataset:
    try:
        images = np.asarray(samples.inputs, dtype=np.float32)
        if images.shape[1:] != (784,):
            raise ValueError(f"got shape {images.shape[1:]}")
        targets = whole_labels(np.asarray(samples.labels))
    except (ValueError, TypeError) as error:
        raise DataError(
            f"{samples.source}: inputs must be lists of 784 numbers, as of FEMNIST, or tweets, as "
            f"of Sent140; other data sets of LEAF are not read: {error}"
        ) from error
    if targets.dtype.kind not in "iu":
        raise DataError(f"{samples.source}: labels must be whole numbers, as of FEMNIST")
    if images.size and not (images.min() >= 0 and images.max() <= 1):
        raise DataError(
            f"{samples.source}: pixels must be 0 to 1, as LEAF writes them, got {images.min():g} "
            f"to {images.max():g}"
        )
    return Dataset(
        name=name,
        inputs=images.reshape(-1, *FEMNIST_SHAPE),
        targets=targets.astype(np.int64),
        num_classes=FEMNIST_CLASSES,
        num_native_test=samples.num_native_test,
        source=f"LEAF files in {samples.source}",
        writers=np.array(samples.users),
    )


def _of_tweets(
    name: str, samples: Samples, numbers: Callable[[Sequence[str]], NDArray[np.float32]]
) -> Dataset:
    odd = next((fields for fields in samples.inputs if not _is_tweet(fields)), None)
    if odd is not None:
        raise DataError(
            f"{samples.source}: tweets must be lists with their text in field 5, got {odd!r:.80}"
        )
    texts = [str(fields[TEXT]) for fields in samples.inputs]
    return Dataset(
        name=name,
        inputs=numbers(texts),
        targets=np.array([sentiment(label, str(samples.source)) for label in samples.labels]),
        num_classes=2,
        num_native_test=samples.num_native_test,
        source=f"LEAF files in {samples.source}",
        writers=np.array(samples.users),
    )


def _is_text(samples: Samples) -> bool:
    first = samples.inputs[0] if samples.inputs else None
    return isinstance(first, list) and any(isinstance(field, str) for field in first)


def _is_tweet(fields: object) -> bool:
    """Whether it is a list with a text, which may be a number."""
    return (
        isinstance(fields, list)
        and len(fields) > TEXT
        and isinstance(fields[TEXT], str | int | float)
    )


def _parts(folder: Path) -> list[Path] | None:
    for names in PARTS:
        folders = [folder / name for name in names if name is not None]
        if all(map(_is_leaf, folders)):
            return folders
    return None


def _is_leaf(folder: Path) -> bool:
    """Whether a folder has a JSON file that begins as those of LEAF."""
    heads = (_head(path) or b"" for path in _json_files(folder))
    return any(any(key in head for key in KEYS) for head in heads)


def _json_files(folder: Path) -> list[Path]:
    return [path for path in seen(folder) if path.suffix == ".json" and not is_folder(path)]


def _head(path: Path) -> bytes | None:
    """Beginning of a file; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(BEGINNING)
    except OSError:
        return None


def _users(folder: Path) -> dict[str, tuple[list[Any], list[Any]]]:
    """Inputs and labels by user, of all JSON files of a folder."""
    found: dict[str, tuple[list[Any], list[Any]]] = {}
    for path in _json_files(folder):
        text = text_of(path)
        try:
            content = json.loads(text)
            by_user = {user: (data["x"], data["y"]) for user, data in content["user_data"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path} must be a JSON file of LEAF with user_data: {error}"
            ) from error
        odd = next((user for user, pair in by_user.items() if set(map(type, pair)) != {list}), None)
        if odd is not None:
            raise DataError(f"{path}: x and y of user {odd!r} must be lists")
        _check_stated(path, content, {user: len(y) for user, (_, y) in by_user.items()})
        for user, (x, y) in by_user.items():
            if len(x) != len(y):
                raise DataError(f"{path}: user {user!r} has {len(x)} inputs and {len(y)} labels")
            before = found.get(user, ([], []))
            found[user] = (before[0] + x, before[1] + y)
    return found


def _are_names(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_counts(values: list[Any]) -> bool:
    """Whether all are whole numbers, which may be written as 2.0."""
    are_numbers = all(isinstance(value, int | float) for value in values)
    return are_numbers and whole_labels(np.array(values)).dtype.kind in "iu"


def _check_stated(path: Path, content: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    """Compare `users` and `num_samples` of a file, where it has them, with the samples.

    LEAF's `split_data.py` leaves users without samples out of both, but not out of `user_data`.
    """
    users = _stated(path, content, "users", list(sizes), _are_names)
    default = [sizes.get(user, 0) for user in users]
    counts = [int(one) for one in _stated(path, content, "num_samples", default, _are_counts)]
    stated = dict(zip(users, counts, strict=False))
    differ = [user for user in (*sizes, *stated) if stated.get(user, 0) != sizes.get(user, 0)]
    if differ or len(users) != len(counts):
        shown = f": {differ[0]!r} has {sizes.get(differ[0], 0)}" if differ else ""
        raise DataError(
            f"{path}: users and num_samples must agree with user_data, got {len(users)} users, "
            f"{len(counts)} numbers, and samples of {sum(map(bool, sizes.values()))}{shown}"
            + (f" in place of {stated.get(differ[0], 0)}" if differ else "")
        )


def _stated(
    path: Path,
    content: Mapping[str, Any],
    key: str,
    default: list[Any],
    are_all: Callable[[list[Any]], bool],
) -> list[Any]:
    """A list of names or numbers in a file; the default where the file lacks it."""
    values = content.get(key, default)
    if not isinstance(values, list) or not are_all(values):
        what = "names" if are_all is _are_names else "whole numbers"
        raise DataError(f"{path}: {key} must be a list of {what}, got {values!r:.80}")
    return values
