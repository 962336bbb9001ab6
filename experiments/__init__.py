"""The application over bcfl: data, partitions, models, scenarios, reports and the `bcfl` command.

In a Python session: `datasets`, `partitions` and `models` make what a `bcfl.Federation` takes,
`report(run, path)` writes the report of a run as HTML, `save(run, folder)` a folder like those of
`bcfl run`, and `open(folder)` gives the finished runs of either. Loaded lazily.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments import datasets, models, partitions
    from experiments.reports.session import report, save
    from experiments.runs.restore import open_runs as open

_PACKAGES = ("datasets", "models", "partitions")
_NAMES = {
    "open": ("experiments.runs.restore", "open_runs"),
    "report": ("experiments.reports.session", "report"),
    "save": ("experiments.reports.session", "save"),
}

__all__ = ["datasets", "models", "open", "partitions", "report", "save"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name in _PACKAGES:
        return import_module(f"experiments.{name}")
    if name not in _NAMES:
        raise AttributeError(f"module 'experiments' has no attribute {name!r}")
    module, attribute = _NAMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
