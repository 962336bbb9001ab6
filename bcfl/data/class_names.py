"""Names of classes that data sets have: of which classes they are, and whether parts agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bcfl.data.reading import is_loader
from bcfl.runtime.suggestions import counted, first_difference
from bcfl.runtime.user_code import warn_of_data


def names_of_classes(source: Any, target: Any = None) -> tuple[str, ...] | None:  # noqa: ANN401
    """Names of classes by number, as a data set has them; None where it has none.

    Those of a column of Hugging Face, or the `classes` of a torch data set without a
    `target_transform`, which may number classes anew; a data loader has those of its data set.

    Args:
        source: of samples.
        target: column of the targets.
    """
    if is_loader(source):
        source = source.dataset
    if getattr(source, "target_transform", None) is not None:
        return None
    features = getattr(source, "features", None)
    if isinstance(features, Mapping):
        found = getattr(features.get(target), "names", None)
    else:
        found = getattr(source, "classes", None)
    are_names = isinstance(found, list | tuple) and all(isinstance(name, str) for name in found)
    return tuple(found) if are_names and found else None


def common_names(
    names_of: Mapping[str, tuple[str, ...] | None], remedy: str
) -> tuple[str, ...] | None:
    """Names of classes by number, which are the same in all parts that have them.

    The last of them may be absent from some parts.

    Args:
        names_of: names by part; None of parts without names.
        remedy: what numbers the labels of all parts alike, for the message.

    Raises:
        ValueError: they differ.
    """
    named = {part: names for part, names in names_of.items() if names is not None}
    longest = max(named.values(), key=len, default=None)
    for names in named.values():
        if longest is not None and names != longest[: len(names)]:
            differ = {one: own for one, own in named.items() if own in (names, longest)}
            raise ValueError(
                "parts must have the same names of classes in the same order, but "
                f"{first_difference(differ)}; {remedy}"
            )
    return longest


def fitting_names(
    what: str, names: tuple[str, ...] | None, highest: int, width: int | None, remedy: str
) -> tuple[str, ...] | None:
    """Names of the classes of labels; None, with a warning, if they are those of other classes.

    Args:
        what: has the labels, for the warning.
        names: of classes, or of labels where samples have any number of them.
        highest: highest label.
        width: labels in each row of 0 and 1; None where each sample is of one class.
        remedy: what gives other names, for the warning.
    """
    if names is None or (highest < len(names) if width is None else width == len(names)):
        return names
    got = f"labels up to {highest}" if width is None else f"rows of {width} labels"
    warn_of_data(
        f"{what}: {counted(len(names), 'name')} of classes left out, as there are {got}; {remedy}"
    )
    return None


def named_labels(labels: Any, names: Sequence[str] | None, classes: Sequence[Any]) -> Any:  # noqa: ANN401
    """Labels that are numbers of names by their names, where all classes are names; else as given.

    Args:
        labels: of all samples.
        names: of the classes by number, if they are known.
        classes: labels of all classes.
    """
    numbers: NDArray[Any] = np.asarray(labels)
    if names is None or not all(isinstance(one, str) for one in classes):
        return labels
    if numbers.ndim != 1 or numbers.dtype.kind not in "ui" or not numbers.size:
        return labels
    if numbers.min() < 0 or numbers.max() >= len(names):
        return labels
    return np.array(names, object)[numbers]
