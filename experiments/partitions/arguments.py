"""Check of the arguments of a partition, however it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import partial, wraps
from typing import Any, TypeVar, cast

from bcfl.runtime import as_given
from experiments.config.options import check_keys, typed_options
from experiments.datasets.dataset import Dataset
from experiments.partitions.partition import Partition, Split

Divides = TypeVar("Divides", bound=Callable[..., Partition])


def with_checks(function: Divides) -> Divides:
    """A partition whose data set and options are of the types that it says.

    Args:
        function: from a data set, and options with the types of their annotations, to a partition;
            those of `Split` are behind its `**`.

    Returns:
        The function, which raises TypeError where the data set is none, and ValueError where an
        option is unknown (the message suggests the nearest) or of another type.
    """
    name = function.__name__.replace("_", "-")
    signature = inspect.signature(function)
    also = [option.name for option in fields(Split)]

    @wraps(function)
    def divide(dataset: Dataset, *values: Any, **options: Any) -> Partition:  # noqa: ANN401
        if not isinstance(dataset, Dataset):
            read = f"; datasets.load({dataset!r}) reads it" if isinstance(dataset, str) else ""
            raise TypeError(
                "dataset must be a Dataset, as experiments.datasets.load, from_numpy and others "
                f"make it, got {_shown(dataset)}{read}"
            )
        given = signature.bind(dataset, *values, **options).arguments
        chosen = {key: given[key] for key in given if key not in ("dataset", "options")}
        chosen |= given.get("options", {})
        check_keys(f"partition {name!r}", partial(function, dataset), chosen, also)
        return function(dataset, **typed_options(chosen, function, Split))

    return cast("Divides", divide)


def _shown(value: object) -> str:
    return f"a {type(value).__name__}" if hasattr(value, "shape") else as_given(value)
