"""Modules and tensors laid out in memory: flat parameter vectors and alignment."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bcfl.architecture.model import Model
from posteriors.networks.channels import read_channels_last

ALIGNMENT = 64
"""Bytes. Vectorised routines treat the ends of an array by its start address, so that the same
numbers elsewhere may be summed in another order."""


def aligned(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """The tensor on a device, contiguous, at an address that is a multiple of `ALIGNMENT`.

    Args:
        tensor: of any dtype.
        device: of the result.
        dtype: of floating-point tensors; others keep theirs.
    """
    placed = tensor.to(device, dtype) if tensor.is_floating_point() else tensor.to(device)
    placed = placed.contiguous()
    return placed if placed.data_ptr() % ALIGNMENT == 0 else placed.clone()


class FlatModule:
    """A network whose parameters, gradients and buffers are views of flat vectors.

    It is the mutable workspace of an executor: its contents are valid until the next `load`.

    Attributes:
        module: the network.
        parameters: (parameters,) its parameters.
        gradients: (parameters,) their gradients; `backward` adds to them.
        buffers: (buffers,) its running statistics.
    """

    def __init__(
        self, model: Model, device: torch.device, dtype: torch.dtype, *, channels_last: bool = False
    ) -> None:
        """Build the network.

        Args:
            model: its architecture.
            device: of its tensors.
            dtype: their floating-point type.
            channels_last: whether images may be in channels-last format, see `read_channels_last`;
                not for the transforms of `torch.func`.
        """
        self.module: nn.Module = model.module().to(device=device, dtype=dtype)
        if channels_last:
            read_channels_last(self.module)
        self._layout = model.layout
        self.parameters = torch.zeros(model.layout.num_parameters, device=device, dtype=dtype)
        self.gradients = torch.zeros_like(self.parameters)
        self.buffers = torch.zeros(model.layout.num_buffers, device=device, dtype=dtype)
        for parameter, slot in zip(self.module.parameters(), model.layout.parameters, strict=True):
            parameter.data = self.parameters[slot.start : slot.stop].view(slot.shape)
            parameter.grad = self.gradients[slot.start : slot.stop].view(slot.shape)
        self._frozen_norms = [layer for layer in self.module.modules() if _is_frozen_norm(layer)]
        self._train(self.module.training)
        floating = [b for b in self.module.buffers() if b.is_floating_point()]
        self._counters = [b for b in self.module.buffers() if not b.is_floating_point()]
        for buffer, slot in zip(floating, model.layout.buffers, strict=True):
            buffer.data = self.buffers[slot.start : slot.stop].view(slot.shape)

    def load(self, parameters: Tensor, buffers: Tensor, *, training: bool) -> nn.Module:
        """Copy parameters and running statistics into the module; batch counters are set to 0.

        Batch normalisation whose own parameters are all frozen stays in evaluation mode.

        Args:
            parameters: (parameters,) flat parameters.
            buffers: (buffers,) running statistics.
            training: whether the module is put into training mode.
        """
        self.parameters.copy_(parameters)
        self.buffers.copy_(buffers)
        for counter in self._counters:
            counter.zero_()
        if self.module.training is not training:
            self._train(training)
        return self.module

    def _train(self, training: bool) -> None:
        self.module.train(training)
        for layer in self._frozen_norms:
            layer.eval()

    def read(self) -> tuple[Tensor, Tensor]:
        """Copies of the parameters and the running statistics."""
        return self.parameters.clone(), self.buffers.clone()


def _is_frozen_norm(layer: nn.Module) -> bool:
    """Whether a layer is batch normalisation with parameters, none of which is trained."""
    parameters = list(layer.parameters(recurse=False))
    normalises = isinstance(layer, nn.modules.batchnorm._BatchNorm) and bool(parameters)
    return normalises and not any(parameter.requires_grad for parameter in parameters)
