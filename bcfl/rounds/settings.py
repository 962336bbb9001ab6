"""Settings of a run as plain values, for files and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from bcfl.architecture.model import Model
from bcfl.protocol.objective import Objective
from bcfl.rounds.method import Method

PLAIN = (bool, int, float, str)
LONGEST = 20
"""Values of a list that are told one by one."""
DEEPEST = 6
"""Parts within parts that are told."""


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


def plain(value: object, depth: int = 0) -> Any:  # noqa: ANN401 - numbers, texts, lists, mappings
    """A value as JSON can hold it; None for what it cannot.

    Args:
        value: a plain value, a sequence of such, or a dataclass.
        depth: of the value in another; what is deeper than `DEEPEST` is left out.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PLAIN):
        return value
    opaque = callable(value) and not is_dataclass(value)
    if value is None or isinstance(value, type) or opaque or depth > DEEPEST:
        return None
    if isinstance(value, list | tuple | Mapping) and len(value) > LONGEST:
        return f"{len(value)} values"
    if isinstance(value, list | tuple):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, Mapping):
        return {str(key): plain(one, depth + 1) for key, one in value.items()}
    kind = {} if isinstance(value, Objective) else {"kind": type(value).__name__}
    return {**kind, **(_chosen(value, depth) if is_dataclass(value) else {})}


def _chosen(value: Any, depth: int) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """Fields of a dataclass that are not at their defaults; of an objective, all."""
    chosen = {}
    for field in fields(value):
        own, default = getattr(value, field.name, None), field.default
        if isinstance(value, Objective) or not _same(own, default, field.default_factory):
            chosen[field.name] = plain(own, depth + 1)
    return {name: one for name, one in chosen.items() if one not in (None, [], {})}


def _same(own: object, default: object, factory: Any) -> bool:  # noqa: ANN401 - MISSING or a function
    """Whether a value is the default of its field; code of users may fail to tell."""
    try:
        wanted = default if factory is MISSING else factory()
        return type(own) is type(wanted) and bool(own == wanted)
    except Exception:
        return False
