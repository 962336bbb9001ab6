"""Settings of a run as plain values, for files and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from bcfl.architecture.model import Model
from bcfl.protocol.objective import Objective
from bcfl.rounds.method import Method

PLAIN = (bool, int, float, str)
LONGEST = 20
"""Values of a list that are told one by one."""


def settings_of(method: Method, model: Model, **others: object) -> dict[str, Any]:
    """Settings of a run: method, network, and others of the federation.

    Args:
        method: what is run.
        model: the architecture.
        **others: by name; dataclasses become mappings of their fields.

    Returns:
        Mapping of numbers, texts, lists and such mappings, which JSON can hold. Of a part of the
        method, `kind` is the name of its class; its defaults are left out, but those of how
        clients train, and so is what is no plain value.
    """
    settings = {
        "method": method.name,
        "policy": plain(method.policy),
        "tracker": plain(method.tracker),
        "network": {
            "name": model.name,
            "parameters": model.layout.num_parameters,
            "likelihood": model.likelihood,
        },
        **{name: plain(value) for name, value in others.items()},
    }
    return {name: value for name, value in settings.items() if value is not None}


def plain(value: object) -> Any:  # noqa: ANN401 - numbers, texts, lists, mappings
    """A value as JSON can hold it; None for what it cannot.

    Args:
        value: a plain value, a sequence of such, or a dataclass.
    """
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, list | tuple | Mapping) and len(value) > LONGEST:
        return f"{len(value)} values"
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, type) or callable(value) or value is None:
        return None
    kind = {} if isinstance(value, Objective) else {"kind": type(value).__name__}
    return {**kind, **(_chosen(value) if is_dataclass(value) else {})}


def _chosen(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Fields of a dataclass that are not at their defaults; of an objective, all."""
    chosen = {}
    for field in fields(value):
        own = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if isinstance(value, Objective) or not _same(own, default):
            chosen[field.name] = plain(own)
    return {name: one for name, one in chosen.items() if one not in (None, [], {})}


def _same(own: object, default: object) -> bool:
    try:
        return type(own) is type(default) and bool(own == default)
    except (RuntimeError, ValueError):  # arrays have no truth value
        return False
