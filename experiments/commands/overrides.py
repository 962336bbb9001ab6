"""Options of `bcfl run` that override a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from bcfl.methods import NOTHING, named
from experiments.config.scenario import CHOICES, SECTIONS, Scenario
from experiments.config.variants import (
    HELD_OUT_SHARE,
    Grid,
    Variant,
    assignment_of,
    check_methods,
    check_option,
    expanded,
    merged,
    nested,
    value_of,
    values_of,
)

SHARED = ("epsilon", "alpha", "delta", "decay", "posterior")
"""Options of the command that set an option of all methods of the run that have it."""
HELD_OUT = ("validation", "calibration")
"""Options that set training samples aside."""


def overridden(scenario: Scenario, options: Mapping[str, Any]) -> Scenario:
    """The scenario with the options of the command line.

    Args:
        scenario: as in its file.
        options: values by option, None where nothing was given.

    Raises:
        ValueError: a value cannot be read, or no method of the run has the option.
    """
    readers: dict[str, Callable[[Any, Scenario], Scenario]] = {
        "methods": lambda text, now: replace(now, methods=tuple(items(text))),
        "seeds": lambda text, now: replace(now, seeds=tuple(map(seed_of, items(text)))),
        "rounds": lambda number, now: replace(now, federation=now.federation.lasting(number)),
        "clusters": lambda text, now: with_shared(now, "num_clusters", _clusters(text)),
        "cluster-size": lambda text, now: with_shared(now, "cluster_size", _bounds(text)),
        **{name: partial(_with_shared, name) for name in SHARED},
        "data-dir": lambda path, now: replace(
            now, data=replace(now.data, data_dir=str(path.absolute()))
        ),
        "set": with_own_options,
        "grid": with_grids,
    }
    for name, read in readers.items():
        if options.get(name) is not None:
            scenario = read(options[name], scenario)
    return scenario


def with_shared(scenario: Scenario, option: str, value: object) -> Scenario:
    """The scenario with an option of all methods of the run that have it.

    Args:
        scenario: with the methods.
        option: name of the option.
        value: its new value.

    Raises:
        ValueError: no method has it, or the value is of another type.
    """
    having = [
        label for label in scenario.methods if option in named(Variant.of(label).method).options
    ]
    if not having:
        raise ValueError(
            f"no method of this run has an option {option!r}; it has {', '.join(scenario.methods)}"
        )
    return replace(scenario, federation=scenario.federation.with_options(**{option: value}))


def _with_shared(option: str, value: object, scenario: Scenario) -> Scenario:
    return with_shared(scenario, option, value)


def with_own_options(texts: Sequence[str], scenario: Scenario) -> Scenario:
    """The scenario with options of single methods.

    Args:
        texts: such as `ifca-cam.update=joint`.
        scenario: with the methods.

    Raises:
        ValueError: a text is malformed, or names an unknown method or option.
    """
    options = dict(scenario.method_options)
    for text in texts:
        method, option, value = assignment_of(text, "--set")
        if method in (*SECTIONS, *CHOICES, "federation"):
            raise ValueError(
                f"--set is for options of methods, and {method!r} is a section of scenario files; "
                f"give {option!r} in a file of your own (bcfl run FILE.toml)"
            )
        check_methods([method], scenario.methods, "--set")
        check_option(method, option)
        options[method] = merged(options.get(method, {}), nested({option: value_of(value)}))
    return replace(scenario, method_options=options)


def with_grids(texts: Sequence[str], scenario: Scenario) -> Scenario:
    """The scenario with variants of methods for each point of grids.

    Methods that set no samples aside get a share for calibration, by which variants are chosen.

    Args:
        texts: such as `ifca-con-para.weight=0.01,0.1,1`.
        scenario: with the methods.

    Raises:
        ValueError: a text is malformed, or names an unknown method or option.
    """
    grids = []
    for text in texts:
        method, option, values = assignment_of(text, "--grid")
        check_methods([method], scenario.methods, "--grid")
        check_option(method, option)
        grids.append(Grid(method, option, values_of(values)))
    options = dict(scenario.method_options)
    for grid in grids:
        own = merged(scenario.federation.options, options.get(grid.method, {}))
        known = named(grid.method).options
        held_out = (own.get(name, known[name].default) for name in HELD_OUT if name in known)
        if not any(share not in (None, NOTHING, 0) for share in held_out):
            options[grid.method] = {**options.get(grid.method, {}), "calibration": HELD_OUT_SHARE}
    return replace(scenario, methods=expanded(scenario.methods, grids), method_options=options)


def items(text: str) -> list[str]:
    """The parts of a text between commas; none of a blank text.

    Raises:
        ValueError: a part is empty.
    """
    parts = [item.strip() for item in text.split(",")] if text.strip() else []
    if not all(parts):
        raise ValueError(f"{text!r} has nothing at one side of a comma; write a,b,c")
    return parts


def seed_of(text: str) -> int:
    """The seed in a text.

    Raises:
        ValueError: it is not a whole number.
    """
    if not text.isdecimal():
        raise ValueError(f"--seeds must be whole numbers such as 0,1,2, got {text!r}")
    return int(text)


def _clusters(text: str) -> int | str:
    if text != "auto" and not text.isdecimal():
        raise ValueError(f"--clusters must be a whole number or auto, got {text!r}")
    return text if text == "auto" else int(text)


def _bounds(text: str) -> list[int | str]:
    lower, _, upper = (part.strip() for part in text.partition(","))
    if not lower.isdecimal() or not (upper.isdecimal() or upper == "all"):
        raise ValueError(
            f"--cluster-size must be two whole numbers, or one and all, such as 2,15 or 2,all; "
            f"got {text!r}"
        )
    return [int(lower), NOTHING if upper == "all" else int(upper)]
