"""The registry of methods: names, papers, descriptions, recipes and options.

`recipe` and `combinator` register a function. `bcfl list`, tables of scenarios, options of the
command line and the documentation are derived from the registry.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from bcfl.methods.options import (
    OBJECTIVE,
    Option,
    checked,
    documented,
    options_of,
    with_options,
)
from bcfl.methods.training import flat

if TYPE_CHECKING:
    from bcfl.rounds.method import Method

P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The recipe of a method.

    Attributes:
        name: of the method, without a number.
        function: from options to the method.
        paper: authors, year, and where in the paper.
        number: option that a number at the end of the name sets; empty without one.
        group: function that some of the options are passed on to.
    """

    name: str
    function: Callable[..., "Method"]
    paper: str
    number: str = ""
    group: Callable[..., Any] = flat

    @property
    def title(self) -> str:
        """The name, with M for a number."""
        return f"{self.name}-M" if self.number else self.name

    @property
    def example(self) -> str:
        """The name, with the default of its number."""
        return f"{self.name}-{self.options[self.number].default}" if self.number else self.name

    @property
    def description(self) -> str:
        """One sentence."""
        return summary(self.function)

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """Its options by name."""
        return options_of(self.function, self.group) | options_of(flat, None)

    def make(self, values: Mapping[str, Any]) -> "Method":
        """The method with these options.

        Raises:
            ValueError: it has no such option, or a value is of another type or out of range.
        """
        chosen = checked(self.title, self.options, values, elsewhere())
        share = chosen.get("calibration", self.options["calibration"].default)
        if not 0 <= share < 1:
            raise ValueError(f"calibration must lie in [0, 1), got {share}")
        method = self.function(**chosen)
        number = chosen.get(self.number, self.options[self.number].default) if self.number else None
        name = f"{self.name}-{number}" if self.number else self.name
        validation, own = max(method.validation, share), max(method.calibration, share)
        return replace(method, name=name, validation=validation, calibration=own)


@dataclass(frozen=True, kw_only=True)
class Combinator:
    """The combinator of a suffix of names.

    Attributes:
        name: the suffix, without a hyphen in front.
        function: from a method and options to the extended method.
        paper: authors, year, and where in the paper.
        brings: features that a method can have only once.
    """

    name: str
    function: Callable[..., "Method"]
    paper: str
    brings: tuple[str, ...]

    @property
    def description(self) -> str:
        """One sentence."""
        return summary(self.function)

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """Its options by name."""
        return options_of(self.function, None)

    def make(self, method: "Method", values: Mapping[str, Any]) -> "Method":
        """The extended method.

        Args:
            method: method to extend.
            values: values of the options by name.

        Raises:
            ValueError: it has no such option, a value does not fit, or the method does not.
        """
        chosen = checked(f"-{self.name}", self.options, values)
        return replace(self.function(method, **chosen), name=f"{method.name}-{self.name}")


RECIPES: dict[str, Recipe] = {}
"""Methods by name."""
COMBINATORS: dict[str, Combinator] = {}
"""Suffixes, in the order in which they are applied, whatever their order in a name."""


def recipe(
    name: str, paper: str, *, number: str = "", group: Callable[..., Any] = flat
) -> Callable[[Callable[P, "Method"]], Callable[P, "Method"]]:
    """Register a recipe; its calls are validated, and positional options raise TypeError.

    Args:
        name: of the method.
        paper: authors, year, and where in the paper.
        number: option that a number at the end of the name sets.
        group: function that the options behind `**` are passed on to.
    """

    def entered(function: Callable[P, "Method"]) -> Callable[P, "Method"]:
        entry = Recipe(name=name, function=function, paper=paper, number=number, group=group)
        RECIPES[name] = entry

        @wraps(function)
        def validated(*args: P.args, **options: P.kwargs) -> "Method":
            if args:
                raise TypeError(f"options of {function.__name__} are given by keyword")
            return entry.make(options)

        validated.__signature__ = _signature(entry)  # type: ignore[attr-defined] # for help()
        validated.__doc__ = with_options(function, {**entry.options, OBJECTIVE: _local_training()})
        return validated

    return entered


def combinator(
    name: str, paper: str, *, brings: tuple[str, ...]
) -> Callable[
    [Callable[Concatenate["Method", P], "Method"]], Callable[Concatenate["Method", P], "Method"]
]:
    """Register a combinator; its calls are validated, and positional options raise TypeError.

    Args:
        name: the suffix.
        paper: authors, year, and where in the paper.
        brings: features that a method can have only once.
    """

    def entered(
        function: Callable[Concatenate["Method", P], "Method"],
    ) -> Callable[Concatenate["Method", P], "Method"]:
        entry = Combinator(name=name, function=function, paper=paper, brings=brings)
        COMBINATORS[name] = entry

        @wraps(function)
        def validated(method: "Method", /, *args: P.args, **options: P.kwargs) -> "Method":
            if args:
                raise TypeError(f"options of {function.__name__} are given by keyword")
            return entry.make(method, options)

        validated.__doc__ = with_options(function, entry.options)
        return validated

    return entered


def elsewhere() -> Iterator[tuple[str, Option]]:
    """Names of all methods, each with one of its options after another."""
    return ((e.example, option) for e in RECIPES.values() for option in e.options.values())


def _local_training() -> Option:
    """The option that is passed on to local training as it is, for docstrings."""
    return Option(name=OBJECTIVE, hint=Any, default=None, description=documented(flat)[OBJECTIVE])


def summary(function: Callable[..., Any]) -> str:
    """First sentence of a docstring, without the full stop."""
    return (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _signature(entry: Recipe) -> inspect.Signature:
    """The signature of a recipe, including the options that it passes on."""
    training = inspect.signature(flat).parameters[OBJECTIVE]
    parameters = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.hint
        )
        for name, option in entry.options.items()
    ]
    return inspect.Signature([*parameters, training], return_annotation="Method")
