"""Samples of one client in one role, such as training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor

from bcfl.data.arrays import class_numbers, inputs_tensor, targets_tensor
from bcfl.data.frames import without_frame
from bcfl.runtime.numbers import check_finite
from bcfl.runtime.suggestions import described
from posteriors.checks import largest_magnitude


@dataclass(frozen=True, eq=False)
class View:
    """Samples of one client in one role, such as training.

    Attributes:
        inputs: (samples, *input_shape) floats.
        targets: (samples,) int64 class labels, (samples, outputs) floats, or (samples, labels) of 0
            and 1.

    Raises:
        TypeError: inputs or targets are no tensors, or inputs are not floating point.
        ValueError: inputs and targets differ in length, or inputs are not finite.

    Example:
        >>> import bcfl
        >>> view = bcfl.View.from_arrays([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> view.inputs.shape, view.targets
        (torch.Size([2, 2]), tensor([0, 1]))
        >>> len(view)
        2
    """

    inputs: Tensor
    targets: Tensor

    def __post_init__(self) -> None:
        for name in ("inputs", "targets"):
            given = getattr(self, name)
            if not isinstance(given, Tensor):
                raise TypeError(
                    f"{name} must be a torch.Tensor, got {described(given)}; View.from_arrays "
                    "takes arrays"
                )
            if given.ndim == 0:
                raise ValueError(f"{name} must have one row per sample, got a single number")
        if len(self.inputs) != len(self.targets):
            raise ValueError(
                f"inputs and targets must have one row per sample each, got {len(self.inputs)} "
                f"inputs and {len(self.targets)} targets"
            )
        if not self.inputs.is_floating_point():
            raise TypeError(f"inputs must be floating point, got {self.inputs.dtype}")
        for name, given in (("inputs", self.inputs), ("targets", self.targets)):
            if given.is_floating_point() and not math.isfinite(largest_magnitude(given)):
                check_finite(given.detach().cpu().double().numpy(), name)

    def __len__(self) -> int:
        return len(self.targets)

    @classmethod
    def from_arrays(
        cls,
        inputs: ArrayLike | Tensor,
        targets: ArrayLike | Tensor,
        classes: Sequence[Any] | None = None,
    ) -> View:
        """Copy inputs and targets of any memory layout, such as arrays, lists and data frames.

        Floating-point numbers keep their precision; other inputs become float32, or float64 where
        float32 would round them, and other targets int64.

        Args:
            inputs: (samples, ...) numbers, or images of Pillow in a list, see
                `bcfl.data.pixels_of`.
            targets: (samples,) classes, (samples, outputs) numbers, or (samples, labels) of 0 and
                1.
            classes: labels of all classes, in one order for all clients, where targets are such
                labels, for example text; their places in it are the classes.

        Returns:
            The view; it shares no memory with the arrays.

        Raises:
            TypeError: inputs or targets are masked, complex or no numbers.
            ValueError: inputs and targets differ in length, inputs are not finite, or a target is
                none of the classes.
        """
        numbers = targets_tensor(targets) if classes is None else class_numbers(targets, classes)
        return cls(inputs_tensor(without_frame(inputs)), numbers)

    def take(self, indices: Tensor) -> View:
        """The samples at (n,) int64 `indices`, in that order."""
        return View(self.inputs[indices], self.targets[indices])
