"""Parsing of names such as `ifca-cam` or `bcfl-mht-8-w`, and construction of their methods."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bcfl.methods.ensembles import JOINING, ensemble
from bcfl.methods.options import OBJECTIVE, Option, checked
from bcfl.methods.own import own_recipe, reference_of, registered
from bcfl.methods.registry import COMBINATORS, RECIPES, Combinator, Recipe, elsewhere
from bcfl.runtime.suggestions import check_name, nearest_name

if TYPE_CHECKING:
    from bcfl.rounds.method import Method


DEFAULT = "bcfl-race"
"""The method that the name `default` stands for; `experiments/RESULTS.md` says why."""


class UnknownMethodError(ValueError):
    """An unknown name of a method.

    Attributes:
        nearest: the name that may be meant; empty without any.
    """

    def __init__(self, message: str, nearest: str = "") -> None:
        super().__init__(message)
        self.nearest = nearest


@dataclass(frozen=True, kw_only=True)
class NamedMethod:
    """A method by its full name: a recipe with combinators.

    Attributes:
        name: the full name.
        recipe: of the method without suffixes.
        number: that of the name; None where there is none.
        suffixes: in the order of the name.
    """

    name: str
    recipe: Recipe
    number: int | None = None
    suffixes: tuple[str, ...] = ()

    @property
    def combinators(self) -> tuple[Combinator, ...]:
        """The combinators of the suffixes, in the order in which they are applied."""
        return tuple(
            combinator for name, combinator in COMBINATORS.items() if name in self.suffixes
        )

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The options of the recipe, with the number as default, and those of the suffixes."""
        options = dict(self.recipe.options)
        if self.number is not None:
            number = options[self.recipe.number]
            options[number.name] = replace(number, default=self.number, source="the name")
        for combinator in self.combinators:
            options |= combinator.options
        return options

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of the right types; needs no torch.

        Raises:
            UnknownOptionError: the method has no such option.
            ValueError: a value is of another type, or a number differs from that of the name.
        """
        chosen = checked(self.name, self.options, options, elsewhere())
        number = chosen.get(self.recipe.number, self.number)
        if self.number is not None and number != self.number:
            raise ValueError(
                f"{self.recipe.number} must be {self.number}, as the name {self.name!r} has it, "
                f"got {number}"
            )
        return chosen

    def build(self, options: Mapping[str, Any]) -> "Method":
        """The method with these options.

        Raises:
            UnknownOptionError: the method has no such option.
            ValueError: a value does not fit, or suffixes do not fit the method.
        """
        chosen = self.check(options)
        if self.number is not None:
            chosen[self.recipe.number] = self.number
        own = {*self.recipe.options, OBJECTIVE}
        method = self.recipe.make({k: v for k, v in chosen.items() if k in own})
        base = method.name
        for combinator in self.combinators:
            added = {k: v for k, v in chosen.items() if k in combinator.options}
            method = combinator.make(method, added)
        return replace(method, name="-".join([base, *self.suffixes]))


@dataclass(frozen=True, kw_only=True)
class NamedEnsemble:
    """An ensemble of methods by their full names, joined by a plus sign.

    Attributes:
        name: the full name.
        parts: the methods, at least two.
    """

    name: str
    parts: tuple[NamedMethod, ...]

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The options of all parts; one of the same name is of all parts that have it."""
        return {name: option for part in self.parts for name, option in part.options.items()}

    def check(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of the right types; needs no torch. See `bcfl.methods.NamedMethod.check`."""
        chosen = checked(self.name, self.options, options, elsewhere())
        for part in self.parts:
            part.check(self._of(part, chosen))
        return chosen

    def build(self, options: Mapping[str, Any]) -> "Method":
        """The ensemble with these options.

        See `bcfl.methods.NamedMethod.build` and `bcfl.methods.ensemble`.
        """
        chosen = self.check(options)
        methods = [part.build(self._of(part, chosen)) for part in self.parts]
        return ensemble(methods, self.name)

    def _of(self, part: NamedMethod, options: Mapping[str, Any]) -> dict[str, Any]:
        known = {*part.options, OBJECTIVE}
        return {name: value for name, value in options.items() if name in known}


def build(name: str, **options: Any) -> "Method":  # noqa: ANN401 - checked by the recipe
    """The method of a name, such as `wecfl`, `bcfl-mh-6`, `bcfl-g-w` or `ifca-cam-finetune`.

    Args:
        name: of a recipe, a number where it takes one, and suffixes; or several of these, joined by
            plus signs, for an ensemble such as `fedavg+ifca`. `default` is the recipe that is
            recommended where nothing else is known; `module:object` is one of your own.
        options: options of the recipe and of the combinators.

    Returns:
        The method, for `bcfl.Federation`.

    Raises:
        UnknownMethodError: no recipe has the name; the message suggests the nearest.
        UnknownOptionError: the method has no such option; the message names those it has.
        ValueError: a value does not fit, or suffixes exclude one another.

    Example:
        >>> from bcfl import methods
        >>> methods.build("ifca", num_clusters=3).num_clusters
        3
        >>> methods.build("bcfl-mh-3-cam").name
        'bcfl-mh-3-cam'
    """
    return named(name).build(options)


def named(name: str) -> NamedMethod | NamedEnsemble:
    """The recipe, number and suffixes of a name, or those of an ensemble; needs no torch.

    Raises:
        UnknownMethodError: no recipe has the name; the message suggests the nearest.
        UnknownObjectError: `module:object` cannot be imported, or is of another kind.
        ValueError: a suffix occurs twice, or two exclude each other.
        TypeError: the name is not a string.
    """
    check_name("method", name)
    if JOINING in name:
        return NamedEnsemble(name=name, parts=tuple(map(_single, name.split(JOINING))))
    return _single(name)


def _single(name: str) -> NamedMethod:
    base, suffixes = name, list[str]()
    while base not in RECIPES:
        suffix = next((s for s in COMBINATORS if base.endswith(f"-{s}")), None)
        if suffix is None or base in registered("methods"):
            break
        base = base.removesuffix(f"-{suffix}")
        suffixes.insert(0, suffix)
    _check_together(name, suffixes)
    recipe, number = _recipe(DEFAULT if base == "default" else base, name)
    return NamedMethod(name=name, recipe=recipe, number=number, suffixes=tuple(suffixes))


def applicable(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some options that a method has, to build several methods alike.

    Args:
        name: of the method.
        options: values by option, such as those that hold for all methods of a run.

    Returns:
        The options of that method, for `bcfl.methods.build(name, **options)`.

    Example:
        >>> from bcfl import methods
        >>> methods.applicable("fedavg", {"num_clusters": 3, "calibration": 0.2})
        {'calibration': 0.2}
    """
    known = {*named(name).options, OBJECTIVE}
    return {key: value for key, value in options.items() if key in known}


def closest(name: str) -> str:
    """The name, where a method has it, or the one that may be meant; empty where none is like it.

    Args:
        name: of a method, or of an ensemble, perhaps misspelt.
    """
    return JOINING.join(found) if all(found := [_closest(p) for p in name.split(JOINING)]) else ""


def _closest(name: str) -> str:
    try:
        named(name)
    except UnknownMethodError as error:
        return error.nearest
    except (TypeError, ValueError):
        return name
    return name


def available() -> tuple[str, ...]:
    """Names of all methods, as `bcfl.methods.build` takes them, without numbers and suffixes.

    `default`, those of `RECIPES`, and those that installed packages register. Suffixes, the keys of
    `COMBINATORS`, follow a hyphen: `ifca-cam`.

    Returns:
        The names, `default` first; `bcfl.methods.RECIPES` has more about each.

    Example:
        >>> from bcfl import methods
        >>> "ifca" in methods.available()
        True
    """
    own = (name for name in sorted(registered("methods")) if name not in RECIPES)
    return ("default", *RECIPES, *own)


def _check_together(name: str, suffixes: list[str]) -> None:
    by_what: dict[str, list[str]] = {}
    for suffix in suffixes:
        for what in COMBINATORS[suffix].brings:
            by_what.setdefault(what, []).append(suffix)
    for what, bringing in by_what.items():
        if len(bringing) > 1:
            raise ValueError(f"method {name!r} asks for {what} twice: {', '.join(bringing)}")


def _recipe(base: str, name: str) -> tuple[Recipe, int | None]:
    if base in RECIPES:
        return RECIPES[base], None
    reference = reference_of(base, "methods")
    if reference is not None:
        return own_recipe(base, reference), None
    numbered = re.fullmatch(r"(.+)-(\d+)", base)
    if numbered and numbered[1] in RECIPES and RECIPES[numbered[1]].number:
        return RECIPES[numbered[1]], int(numbered[2])
    rest = name[len(base) :]
    near, option = "", ""
    if numbered and numbered[1] in {"default", *RECIPES}:
        near, option = _without_number(numbered[1], rest, int(numbered[2]))
    elif like := nearest_name(base, _names_like(base), cutoff=0.5):
        near = like + rest
    hint = f" Did you mean {near!r}{option}?" if near else ""
    raise UnknownMethodError(f"unknown method {name!r}.{hint} All: bcfl list methods", near)


def _without_number(base: str, rest: str, number: int) -> tuple[str, str]:
    """The name, and the option for a number that the name of a method does not take."""
    recipe = RECIPES[DEFAULT if base == "default" else base]
    if recipe.number:  # of the name that default stands for
        return f"{recipe.name}-{number}{rest}", ""
    clusters = f" with num_clusters={number}" if "num_clusters" in recipe.options else ""
    return base + rest, clusters


def _names_like(base: str) -> list[str]:
    """Names of recipes, numbered ones too, and what suffixes make of them where `base` has one."""
    examples = (recipe.example for recipe in RECIPES.values() if recipe.number)
    names = ["default", *RECIPES, *examples, *registered("methods")]
    heads = [name for name in names if base.casefold().startswith(f"{name}-")]
    return names + [f"{head}-{suffix}" for head in heads for suffix in COMBINATORS]
