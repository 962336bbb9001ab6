"""Seeds, devices, thread limits, worker processes, locked folders, and checks of arguments.

Independent of clients and models. Loaded lazily: seeds, workers and folders need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcfl.runtime.arrays import (
        AS_ROWS,
        arrays_in,
        featureless,
        holds_sets,
        pair_of,
        plain_array,
        real_array,
    )
    from bcfl.runtime.devices import device_named, limited_threads
    from bcfl.runtime.folders import (
        FEDERATIONS,
        GRAPHS,
        PAIRS,
        RUN_FORMAT,
        BusyError,
        MethodFiles,
        as_path,
        locked,
        whole_folder,
        write_aside,
    )
    from bcfl.runtime.numbers import (
        EXACT_IN_FLOAT64,
        as_whole,
        check_finite,
        check_int64,
        check_present,
        check_whole,
        exceeds_int64,
        is_real,
        is_whole,
        rounded_number,
    )
    from bcfl.runtime.seeds import derive_seed, generator, lineage_key
    from bcfl.runtime.spans import ROUNDING, SMALL_SCALE, Span, seem_to_differ, span_of
    from bcfl.runtime.suggestions import (
        as_given,
        check_name,
        counted,
        first_difference,
        nearest,
        nearest_name,
    )
    from bcfl.runtime.user_code import DataWarning, callers_level, warn_of_data
    from bcfl.runtime.workers import become_worker, died, portable

_MODULES = {
    "arrays": (
        "AS_ROWS",
        "arrays_in",
        "featureless",
        "holds_sets",
        "pair_of",
        "plain_array",
        "real_array",
    ),
    "devices": ("device_named", "limited_threads"),
    "folders": (
        "FEDERATIONS",
        "GRAPHS",
        "PAIRS",
        "RUN_FORMAT",
        "BusyError",
        "MethodFiles",
        "as_path",
        "locked",
        "whole_folder",
        "write_aside",
    ),
    "numbers": (
        "EXACT_IN_FLOAT64",
        "as_whole",
        "check_finite",
        "check_int64",
        "check_present",
        "check_whole",
        "exceeds_int64",
        "is_real",
        "is_whole",
        "rounded_number",
    ),
    "seeds": ("derive_seed", "generator", "lineage_key"),
    "spans": ("ROUNDING", "SMALL_SCALE", "Span", "seem_to_differ", "span_of"),
    "suggestions": (
        "as_given",
        "check_name",
        "counted",
        "first_difference",
        "nearest",
        "nearest_name",
    ),
    "user_code": ("DataWarning", "callers_level", "warn_of_data"),
    "workers": ("become_worker", "died", "portable"),
}
_NAMES = {name: f"bcfl.runtime.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "AS_ROWS",
    "EXACT_IN_FLOAT64",
    "FEDERATIONS",
    "GRAPHS",
    "PAIRS",
    "ROUNDING",
    "RUN_FORMAT",
    "SMALL_SCALE",
    "BusyError",
    "DataWarning",
    "MethodFiles",
    "Span",
    "arrays_in",
    "as_given",
    "as_path",
    "as_whole",
    "become_worker",
    "callers_level",
    "check_finite",
    "check_int64",
    "check_name",
    "check_present",
    "check_whole",
    "counted",
    "derive_seed",
    "device_named",
    "died",
    "exceeds_int64",
    "featureless",
    "first_difference",
    "generator",
    "holds_sets",
    "is_real",
    "is_whole",
    "limited_threads",
    "lineage_key",
    "locked",
    "nearest",
    "nearest_name",
    "pair_of",
    "plain_array",
    "portable",
    "real_array",
    "rounded_number",
    "seem_to_differ",
    "span_of",
    "warn_of_data",
    "whole_folder",
    "write_aside",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name not in _NAMES:
        raise AttributeError(f"module 'bcfl.runtime' has no attribute {name!r}")
    value = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value
