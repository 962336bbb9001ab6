"""Things of one's own by name: `module:object`, or a name that a package registers.

A package registers names as entry points of the groups `bcfl.methods`, `bcfl.datasets`,
`bcfl.partitions` and `bcfl.models`; their values are `module:object` too.
"""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from bcfl.methods.options import OBJECTIVE
from bcfl.methods.registry import Recipe
from bcfl.runtime.suggestions import nearest
from bcfl.runtime.user_code import place_of

if TYPE_CHECKING:
    from bcfl.rounds.method import Method

SEPARATOR = ":"
METHOD = "a Method, a policy, or a function or class that makes one of its keyword arguments"


class UnknownObjectError(ValueError):
    """A reference to an object that cannot be imported, or is of another kind."""


class OwnCodeError(ValueError):
    """An error in the code of a data set, partition, model, method or federation of one's own."""


def registered(kind: str) -> dict[str, str]:
    """References by the names that installed packages register.

    Args:
        kind: `methods`, `datasets`, `partitions` or `models`.
    """
    return {entry.name: _reference(entry) for entry in entry_points(group=f"bcfl.{kind}")}


def reference_of(name: str, kind: str) -> str | None:
    """The reference that a name is, or stands for; None if it is neither.

    Args:
        name: a reference, or a name that a package registers.
        kind: see `bcfl.methods.registered`.

    Raises:
        UnknownObjectError: packages register the name for different objects.
    """
    if SEPARATOR in name:
        return name
    found = sorted({_reference(entry) for entry in entry_points(group=f"bcfl.{kind}", name=name)})
    if len(found) > 1:
        raise UnknownObjectError(
            f"packages register {name!r} among {kind} for {' and '.join(found)}: write which"
        )
    return found[0] if found else None


def _reference(entry: EntryPoint) -> str:
    """The value of an entry point without the extras that may follow it."""
    return entry.value.partition("[")[0].replace(" ", "")


def imported(reference: str, what: str, expected: str) -> Any:  # noqa: ANN401 - any object
    """The object of a reference.

    Modules are found as by `python -m`: among the installed packages, and in the folder in which
    the command runs.

    Args:
        reference: `module:object`.
        what: kind of thing, for the message.
        expected: what the object must be, for the message.

    Raises:
        UnknownObjectError: the module cannot be imported, or does not have the object.
    """
    module_name, _, path = reference.partition(SEPARATOR)
    title = f"{what} {reference!r}"
    if module_name.endswith(".py"):
        name = module_name.removesuffix(".py").replace("/", ".").lstrip(".")
        raise UnknownObjectError(f"{title} must name a module, no file: {name}{SEPARATOR}{path}")
    if not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise UnknownObjectError(f"{title} must be written module:object, such as mine:load")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        is_itself = f"{module_name}.".startswith(f"{error.name}.")
        where = "among the installed packages, nor in the folder where the command runs"
        why = f"is not {where}" if is_itself else f"imports {error.name!r}, which is not installed"
        raise UnknownObjectError(f"{title}: module {module_name!r} {why}") from error
    except Exception as error:
        kind = type(error).__name__
        raise UnknownObjectError(
            f"{title}: module {module_name!r} cannot be imported: {kind}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UnknownObjectError(
                f"{title}: module {module_name!r} has no object {path!r}."
                f"{nearest(part, _own_names(found))} Expected {expected}"
            )
        found = getattr(found, part)
    return found


def _own_names(place: object) -> list[str]:
    """Names that a module defines, without those that it imports; all of other objects."""
    if not inspect.ismodule(place):
        return dir(place)
    package = place.__name__.partition(".")[0]
    return [
        name
        for name, value in vars(place).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and str(getattr(value, "__module__", place.__name__)).partition(".")[0] == package
    ]


def made_by(reference: str, what: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - any object
    """What code of one's own makes; an error in it is reported with the reference.

    Args:
        reference: `module:object`.
        what: kind of thing, for the message.
        make: calls the object.

    Raises:
        OwnCodeError: it raised an error.
    """
    try:
        return make()
    except Exception as error:
        kind, place = type(error).__name__, place_of(error)
        at = f", at {place}" * bool(place)
        raise OwnCodeError(f"{what} {reference!r} raised {kind}: {error}{at}") from error


def misfit(what: str, reference: str, found: object, expected: str) -> UnknownObjectError:
    """The error about an object, or about what it made, that is of another kind.

    Args:
        what: what it should be, such as `method`.
        reference: `module:object`.
        found: what is there, or what that made.
        expected: kinds that are allowed, in words.
    """
    kind = "a class" if isinstance(found, type) else f"of type {type(found).__name__}"
    return UnknownObjectError(f"{what} {reference!r} is {kind}, expected {expected}")


def own_recipe(name: str, reference: str) -> Recipe:
    """A recipe of an object of one's own; its keyword arguments are the options.

    Args:
        name: of the method.
        reference: `module:object` of a `Method`, a policy, or what makes one.

    Raises:
        UnknownObjectError: there is no such object, or it is of another kind.
    """
    value = imported(reference, "method", METHOD)
    if not callable(value) and not _is_made(value):
        raise misfit("method", reference, value, METHOD)
    make = value if callable(value) and not _is_made(value) else None
    parameters = {} if make is None else keywords(make)

    def function(**options: Any) -> "Method":  # noqa: ANN401 - of the object's own types
        given = {name: options[name] for name in options if name in parameters}
        lacking = [p.name for p in parameters.values() if p.default is p.empty]
        lacking = [p for p in lacking if p not in given and p != OBJECTIVE]
        if lacking:
            raise ValueError(f"method {name!r} needs a value of {', '.join(lacking)}")
        if make is None:
            return _as_method(reference, value)
        return _as_method(reference, made_by(reference, "method", lambda: make(**given)))

    function.__doc__ = inspect.getdoc(value)
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # read as options
        [p.replace(kind=p.KEYWORD_ONLY) for p in parameters.values()]
    )
    return Recipe(name=name, function=function, paper="")


def keywords(make: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Parameters that can be given by keyword, with their types.

    Args:
        make: a function or class.
    """
    try:
        signature = inspect.signature(make, eval_str=True)
    except (NameError, TypeError):  # types that are imported for type checkers alone
        signature = inspect.signature(make)
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: p for name, p in signature.parameters.items() if p.kind in kinds}


def _is_made(value: object) -> bool:
    """Whether an object is a method or policy already, not the class of one."""
    return not isinstance(value, type) and (hasattr(value, "associate") or hasattr(value, "policy"))


def _as_method(reference: str, made: Any) -> "Method":  # noqa: ANN401 - checked here
    from bcfl.rounds.method import Method

    if isinstance(made, Method):
        return made
    if not _is_made(made):
        raise misfit("method", reference, made, METHOD)
    return Method(policy=made)
