"""Warnings of inputs that seem to be of another scale than others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bcfl.data.clients import ClientData
from bcfl.data.images import holds_images
from bcfl.data.names import TRAIN
from bcfl.runtime.spans import Span, seem_to_differ
from bcfl.runtime.suggestions import counted
from bcfl.runtime.user_code import callers_level

WHITE = (255, 65535)
"""The highest values of images of 8 and of 16 bits."""
SHOWN = 3
"""Views that a warning names."""
Spans = Mapping[tuple[str, str], Span]
"""The lowest and the highest input by client and view."""


class InputsWarning(UserWarning):
    """Inputs seem to be of several scales, such as bytes and numbers from 0 to 1."""


def span_of_tensor(values: Tensor) -> Span:
    """The lowest and the highest of finite numbers.

    Args:
        values: at least one.
    """
    low, high = torch.aminmax(values)
    return Span(low.item(), high.item())


def input_spans(clients: Sequence[ClientData]) -> Spans:
    """The lowest and the highest input of each view that holds a sample.

    Args:
        clients: with all their views.
    """
    return {
        (data.client, name): span_of_tensor(view.inputs)
        for data in clients
        for name, view in data.views.items()
        if len(view)
    }


def training_span(spans: Spans) -> Span:
    """The lowest and the highest training input of all clients and time steps.

    Args:
        spans: of all views.
    """
    found = [span for (_, name), span in spans.items() if name.partition(":")[0] == TRAIN]
    return Span(min(span.low for span in found), max(span.high for span in found))


def warn_of_input_scales(clients: Sequence[ClientData], spans: Spans) -> None:
    """Warn of views whose inputs seem to be of another scale than those of others.

    Args:
        clients: with all their views.
        spans: see `input_spans`.

    Warns:
        InputsWarning: some have inputs from 0 to 1, not all of them whole numbers, and others from
            0 to more than 16.
    """
    if not seem_to_differ(spans.values()):
        return
    views = {(data.client, name): view for data in clients for name, view in data.views.items()}
    units = [key for key, span in spans.items() if span.is_unit and _has_shares(views[key].inputs)]
    large = [key for key, span in spans.items() if span.is_large]
    if units:
        whole = _white(max(spans[key].high for key in large))
        _warn(
            f"inputs seem to be of several scales, {_listed(units, spans)}, but "
            f"{_listed(large, spans)}; give all of them on one, such as `inputs / {whole}` of the "
            "latter"
        )


def warn_of_new_inputs(what: str, given: Any, inputs: Tensor, training: Span | None) -> None:  # noqa: ANN401
    """Warn of new inputs that seem to be of another scale than those of training.

    Args:
        what: how the warning calls them.
        given: the inputs, as they were given.
        inputs: these as a tensor.
        training: the lowest and the highest input of training; None if it is not known.

    Warns:
        InputsWarning: some are from 0 to 1, and not all whole numbers if they are the new ones, and
            the others from 0 to more than 16.
    """
    if training is None or not inputs.numel():
        return
    new = span_of_tensor(inputs)
    if not seem_to_differ((training, new)) or (new.is_unit and not _has_shares(inputs)):
        return
    sign = "/" if new.is_large else "*"
    whole = _white(max(new.high, training.high))
    _warn(
        f"{what} are {_range(new)}, but those of training were {_range(training)}, which seem to "
        f"be of another scale; give them as for training, such as `{_plain(given)} {sign} {whole}`"
    )


def _has_shares(inputs: Tensor) -> bool:
    """Whether some numbers are not whole."""
    return bool((inputs != inputs.round()).any())


def _white(high: float) -> str:
    """What stands for 1 in numbers up to another, at a guess."""
    return f"{next((white for white in WHITE if high <= white), high):.6g}"


def _range(span: Span) -> str:
    return f"from {span.low:.4g} to {span.high:.6g}"


def _listed(keys: Sequence[tuple[str, str]], spans: Spans) -> str:
    """Clients and views with where their inputs begin and end."""
    shown = [f"{client!r} ({name}) {_range(spans[client, name])}" for client, name in keys[:SHOWN]]
    left = len(keys) - len(shown)
    return ", ".join([*shown, *([f"and {counted(left, 'more view')}"] if left else ())])


def _plain(given: Any) -> str:  # noqa: ANN401
    """How inputs become numbers to calculate with."""
    if holds_images(given):
        return "numpy.stack([bcfl.data.pixels_of(image) for image in inputs])"
    return "numpy.asarray(inputs)" if isinstance(given, list | tuple) else "inputs"


def _warn(message: str) -> None:
    warnings.warn(message, InputsWarning, stacklevel=callers_level())
