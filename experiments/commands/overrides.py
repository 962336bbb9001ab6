"""What options of `bcfl run` change in a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from experiments.config.scenario import Scenario
    from experiments.config.tables import Rules
    from posteriors import LocalPosteriorName

NUMBERS = ("epsilon", "alpha", "delta", "decay")
"""Options that are keys of `[federation]` as they are."""


def overridden(scenario: Scenario, given: Mapping[str, Any]) -> Scenario:
    """The scenario with what was given on the command line.

    Args:
        scenario: as its file has it.
        given: values by option, None where nothing was given.

    Raises:
        ValueError: a value cannot be read, or is out of range.
    """
    readers: dict[str, Callable[[Any, Scenario], dict[str, Any]]] = {
        "methods": lambda text, now: {"methods": tuple(_items(text))},
        "seeds": lambda text, now: {"seeds": tuple(map(_seed, _items(text)))},
        "rounds": lambda number, now: {"federation": now.federation.lasting(number)},
        "clusters": lambda text, now: {
            "federation": replace(now.federation, num_clusters=_clusters(text))
        },
        "cluster-size": lambda text, now: {"federation": _bounded(now.federation, text)},
        **{name: partial(_with_number, name) for name in NUMBERS},
        "posterior": lambda name, now: {
            "federation": replace(now.federation, posterior=_posterior(name))
        },
        "data-dir": lambda path, now: {"data": replace(now.data, data_dir=str(path.absolute()))},
    }
    for name, read in readers.items():
        if given[name] is not None:
            scenario = replace(scenario, **read(given[name], scenario))
    return scenario


def _with_number(name: str, number: float, now: Scenario) -> dict[str, Any]:
    changed: dict[str, Any] = {name: number}
    return {"federation": replace(now.federation, **changed)}


def _posterior(name: str) -> LocalPosteriorName:
    from experiments.config.options import chosen
    from posteriors import LOCAL_POSTERIORS

    chosen("posterior", name, LOCAL_POSTERIORS)
    return cast("LocalPosteriorName", name)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"--seeds must be whole numbers such as 0,1,2, got {text!r}")
    return int(text)


def _clusters(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdecimal():
        raise ValueError(f"--clusters must be a whole number or auto, got {text!r}")
    return int(text)


def _bounded(rules: Rules, text: str) -> Rules:
    lower, _, upper = (part.strip() for part in text.partition(","))
    if not lower.isdecimal() or not (upper.isdecimal() or upper == "all"):
        raise ValueError(
            f"--cluster-size must be two whole numbers, or one and all, such as 2,15 or 2,all; "
            f"got {text!r}"
        )
    most: int | Literal["all"] = "all" if upper == "all" else int(upper)
    return replace(rules, min_cluster_size=int(lower), max_cluster_size=most)
