"""Typer uses names that click will remove; the warning is theirs."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import typer.testing  # noqa: F401
