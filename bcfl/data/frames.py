"""Columns of data frames and data sets: their names, and their values as one array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bcfl.data.images import with_pixels
from bcfl.runtime.arrays import AS_COLUMNS, TO_COLUMNS, has_text, real_array
from bcfl.runtime.numbers import check_finite


def check_columns(columns: Iterable[tuple[object, ArrayLike]], are_of_frame: bool) -> None:
    """Check columns of inputs, each by its name.

    Args:
        columns: name and (samples, ...) values of each.
        are_of_frame: whether they are those of a data frame, for the message.

    Raises:
        TypeError: one does not hold real numbers.
        ValueError: one is not finite.
    """
    given = [(name, np.asarray(values)) for name, values in columns]
    of_text = AS_COLUMNS
    if are_of_frame:
        text = [name for name, values in given if has_text(values)]
        of_text = (
            f"{TO_COLUMNS} by `pandas.get_dummies(table, columns={text})` of the "
            "whole `table`, before it is divided among clients"
        )
    for name, values in given:
        what = f"column {name!r} of the inputs"
        check_finite(real_array(values, what, of_text), what)


def named_columns(values: Any) -> tuple[Any, ...]:  # noqa: ANN401 - of libraries that may not be installed
    """Names of the columns of a data frame; none if it is no frame, or if names are repeated.

    Args:
        values: inputs of a client.
    """
    if not hasattr(values, "columns") or not hasattr(values, "iloc"):
        return ()
    names = tuple(values.columns)
    return names if len(set(names)) == len(names) else ()


def are_numbered(names: Sequence[Any]) -> bool:
    """Whether names only number the columns, from 0, as those of frames without names do.

    Args:
        names: of the columns, in their order.
    """
    return tuple(names) == tuple(range(len(names)))


def without_frame(values: Any, columns: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - as above
    """Inputs, of a data frame the (samples, columns) array of its columns; images as pixels.

    Args:
        values: inputs; if they are neither a data frame nor a list of images of Pillow, they are
            returned.
        columns: names in the order of the array; by default all in the order of the frame. Columns
            that are only numbered, here or there, are taken in their order.

    Raises:
        TypeError: a column does not hold real numbers.
        ValueError: a column is not finite, the names are others than these, or an image has more
            than 8 bits in each channel of a colour.
    """
    values = ordered_columns(values, columns, "inputs")
    if not hasattr(values, "columns") or not hasattr(values, "iloc") or not len(values.columns):
        return with_pixels(values)
    arrays = [np.asarray(values.iloc[:, index]) for index in range(len(values.columns))]
    check_columns(zip(values.columns, arrays, strict=True), are_of_frame=True)
    return np.stack(arrays, axis=1)


def ordered_columns(values: Any, columns: Sequence[Any], what: str) -> Any:  # noqa: ANN401 - as above
    """A data frame with its columns in the order of those of the training samples.

    Args:
        values: a data frame; anything else is returned as it is.
        columns: names of the training samples; where there are none, the order is kept.
        what: has the columns, for the message.

    Raises:
        ValueError: the names are others than these, and neither are only numbered.
    """
    names = named_columns(values)
    return values[list(in_order(names, columns, what))] if columns and names else values


def in_order(
    names: Sequence[Any], wanted: Sequence[Any], what: str, are_of_frame: bool = True
) -> Sequence[Any]:
    """Names of columns in the order of those of the training samples.

    Args:
        names: of the columns, in any order.
        wanted: those of the training samples.
        what: has them, for the message.
        are_of_frame: whether they are those of a data frame, for the message.

    Raises:
        ValueError: one is missing, or there is another, and neither are only numbered.
    """
    if set(names) == set(wanted):
        return wanted
    if len(names) == len(wanted) and (are_numbered(names) or are_numbered(wanted)):
        return names
    missing = [name for name in wanted if name not in names]
    more = [name for name in names if name not in wanted]
    remedies = []
    if are_of_frame and more:
        remedies.append(f"`frame.drop(columns={more})` leaves out others")
    if are_of_frame and missing:
        remedies.append(f"categories without a sample become columns of 0 by {filled(wanted)}")
    if not are_of_frame and not missing:
        remedies.append(f"inputs={list(wanted)} leaves out others")
    raise ValueError(
        f"{what} must have the columns of the training samples, {list(wanted)}, got {list(names)}"
        + "; " * bool(remedies)
        + ", ".join(remedies)
    )


def filled(names: Sequence[Any]) -> str:
    """How columns that a data frame lacks are added to it, in words; its others follow them.

    Args:
        names: columns that are wanted.
    """
    return f"`frame.reindex(columns=[*dict.fromkeys([*{list(names)}, *frame])], fill_value=0)`"
