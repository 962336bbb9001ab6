"""Methods of a run with their options: `ifca`, or one of several variants, `ifca@num_clusters=3`.

A variant has its options in its name, which identifies it in tables, folders and files.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from bcfl.methods import NOTHING, OBJECTIVE, UnknownOptionError, named
from bcfl.runtime import nearest

SEPARATOR = "@"
HELD_OUT_SHARE = 0.2
"""Share of the training samples that clients hold out for the choice within a grid."""


@dataclass(frozen=True)
class Variant:
    """A method with the options in its label.

    Attributes:
        method: name of the method.
        options: values by option, as in the name.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, label: str) -> Variant:
        """Parse the label of a variant.

        Raises:
            ValueError: a part after the separator is no `option=value`.
        """
        method, *rest = label.split(SEPARATOR)
        options: dict[str, Any] = {}
        for text in rest:
            name, equals, value = text.partition("=")
            if not (name and equals and value):
                raise ValueError(f"{label!r} must be METHOD{SEPARATOR}OPTION=VALUE, got {text!r}")
            options[name] = value_of(value)
        return cls(method, nested(options))

    def labelled(self, options: Mapping[str, Any]) -> str:
        """The name with further options, the new ones last."""
        values = {**flattened(self.options), **options}
        pairs = (f"{name}={in_text(value)}" for name, value in values.items())
        return SEPARATOR.join([self.method, *pairs])


@dataclass(frozen=True, order=True)
class Pair:
    """One method with one seed: the unit of work of a run.

    Attributes:
        method: label of the method, with the options of its variant.
        seed: of the partition, the networks and all draws.
    """

    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method}, seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """Values of one option of a method to compare.

    Attributes:
        method: name of the method.
        option: name of the option.
        values: to try.
    """

    method: str
    option: str
    values: tuple[Any, ...]


def expanded(labels: Sequence[str], grids: Sequence[Grid]) -> tuple[str, ...]:
    """Methods of a run with a variant for each point of the product of the grids.

    Args:
        labels: methods of the run.
        grids: of some of them.

    Raises:
        ValueError: a grid is of a method that is not among them.
    """
    variants: list[str] = []
    check_methods((grid.method for grid in grids), labels, "--grid")
    for label in labels:
        variant = Variant.of(label)
        mine = [grid for grid in grids if grid.method == variant.method]
        names = [grid.option for grid in mine]
        points = product(*(grid.values for grid in mine))
        variants += [
            variant.labelled(dict(zip(names, point, strict=True))) if mine else label
            for point in points
        ]
    return tuple(variants)


def is_own(label: str) -> bool:
    """Whether a label is of a method of one's own, by `module:object`."""
    return ":" in Variant.of(label).method


def check_methods(names: Any, labels: Sequence[str], what: str) -> None:  # noqa: ANN401
    """Check that options are of methods of the run.

    Args:
        names: names of methods.
        labels: labels of the variants of the run.
        what: where the names were given, for the message.

    Raises:
        ValueError: one is not; the message names those that are.
    """
    known = list(dict.fromkeys(Variant.of(label).method for label in labels))
    for name in names:
        named(name)
        if name not in known:
            raise ValueError(
                f"{what} names {name!r}, which is not a method of this run.{nearest(name, known)} "
                f"It has: {', '.join(known)}"
            )


def assignment_of(text: str, what: str) -> tuple[str, str, str]:
    """Method, option and value of a text such as `ifca-cam.update=joint`.

    Args:
        text: METHOD.OPTION=VALUE.
        what: where it was given, for the message.

    Raises:
        ValueError: the text has another form.
    """
    path, equals, value = text.partition("=")
    module, colon, rest = path.strip().rpartition(":")
    method, dot, option = rest.partition(".")
    method = f"{module}{colon}{method}"
    if not (method and dot and option and equals and value.strip()):
        form = "METHOD.OPTION=V1,V2" if what == "--grid" else "METHOD.OPTION=VALUE"
        example = f"ifca.num_clusters=3{',4' if what == '--grid' else ''}"
        raise ValueError(f"{what} must be {form}, such as {example}, got {text!r}")
    return method, option, value.strip()


def value_of(text: str) -> Any:  # noqa: ANN401 - any TOML value
    """A TOML value, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def values_of(text: str) -> tuple[Any, ...]:
    """Values separated by commas outside brackets and quotes."""
    try:
        return tuple(tomllib.loads(f"values = [{text}]")["values"])
    except tomllib.TOMLDecodeError:
        return tuple(value_of(part.strip()) for part in text.split(",") if part.strip())


def in_text(value: object) -> str:
    """The inverse of `value_of`, without spaces."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ",".join(f'"{v}"' if isinstance(v, str) else in_text(v) for v in value) + "]"
    return NOTHING if value is None else str(value)


def nested(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with dotted names, such as `objective.learning_rate`, as nested tables."""
    tables: dict[str, Any] = {}
    for name, value in options.items():
        table, dot, key = name.partition(".")
        if dot and table == OBJECTIVE:
            tables[table] = {**tables.get(table, {}), key: value}
        else:
            tables[name] = value
    return tables


def flattened(options: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse of `nested`."""
    table = options.get(OBJECTIVE, {})
    own = {name: value for name, value in options.items() if name != OBJECTIVE}
    return {**own, **{f"{OBJECTIVE}.{key}": value for key, value in table.items()}}


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The union of two sets of options; options of local training are merged one by one.

    Args:
        first: options by name.
        second: options that take precedence.
    """
    training = {**first.get(OBJECTIVE, {}), **second.get(OBJECTIVE, {})}
    return {**first, **second, **({OBJECTIVE: training} if training else {})}


def written(table: Mapping[str, Any]) -> dict[str, Any]:
    """Keys and values as in TOML, which has no None."""
    return {
        key: written(value) if isinstance(value, Mapping) else _written(value)
        for key, value in table.items()
    }


def _written(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_written(item) for item in value]
    return NOTHING if value is None else value


def check_option(method: str, option: str) -> None:
    """Check that a method has an option.

    Args:
        method: name of a method.
        option: name of an option, or `objective.` and a field of it.

    Raises:
        UnknownMethodError: there is no such method.
        UnknownOptionError: it has no such option; the message names those it has.
    """
    table, dot, _ = option.partition(".")
    known = named(method)
    if dot and table == OBJECTIVE:
        return
    if option not in known.options:
        known.check({option: None})
        raise UnknownOptionError(
            f"{OBJECTIVE} of {method!r} is a table, such as objective.momentum"
        )
