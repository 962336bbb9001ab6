"""Networks as functions of one flat parameter vector, in the order of `module.parameters()`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

JACOBIAN_BYTES = 16 * 2**20
"""Default bound on the Jacobians held at once, in bytes."""
WITHOUT_VMAP = (nn.RNNBase, nn.MultiheadAttention)
"""Layers that vmap refuses, or takes slowly and with a warning."""


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Run a block with dropout off and running statistics frozen; restore every layer's mode."""
    modes = [(layer, layer.training) for layer in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training


def flat_parameters(module: nn.Module) -> Tensor:
    """Copy of all parameters, (parameters,), without gradient."""
    return torch.cat([value.detach().flatten() for value in module.parameters()])


def free_indices(module: nn.Module) -> Tensor:
    """Places in the flat vector of the parameters that need a gradient, (free,), int64."""
    flags = [torch.full((p.numel(),), p.requires_grad) for p in module.parameters()]
    return torch.cat(flags).nonzero().squeeze(1)


def indices_of(module: nn.Module, names: set[str]) -> Tensor:
    """Indices of the named parameters in the flat vector, int64.

    Args:
        module: Network.
        names: Names of parameters.
    """
    flags = [torch.full((p.numel(),), name in names) for name, p in module.named_parameters()]
    return torch.cat(flags).nonzero().squeeze(1)


def own_copy(inputs: Tensor, like: Tensor | None = None) -> Tensor:
    """A copy of inputs, which a network may change in place.

    Args:
        inputs: Inputs, (samples, ...).
        like: Parameters of the network, whose dtype floating-point inputs get; None keeps theirs.
    """
    if like is None or not inputs.is_floating_point():
        return inputs.clone()
    return inputs.to(like.dtype, copy=True)


def outputs_of(module: nn.Module, inputs: Tensor) -> Tensor:
    """Outputs of the network, in the mode that it is in, in the dtype of its parameters.

    Args:
        module: Network.
        inputs: Inputs, (samples, ...), left as they are.
    """
    outputs: Tensor = module(own_copy(inputs, next(module.parameters(), None)))
    return outputs


def outputs_at(module: nn.Module, vector: Tensor, inputs: Tensor) -> Tensor:
    """Outputs of the network with other parameters; differentiable in the vector.

    Args:
        module: Network; its own parameters, buffers and mode are left alone.
        vector: Parameters, (parameters,); the computation is in their dtype.
        inputs: Inputs, (samples, ...), left as they are.

    Returns:
        Outputs in eval mode, (samples, outputs).

    Raises:
        ValueError: If the vector has the wrong shape.
    """
    tensors = split(module, vector) | _buffers_in(vector.dtype, module)
    with eval_mode(module):
        outputs: Tensor = functional_call(module, tensors, (own_copy(inputs, vector),))
    return outputs


def _buffers_in(dtype: torch.dtype, module: nn.Module) -> dict[str, Tensor]:
    """Floating-point buffers of another dtype, by name, in this one."""
    return {
        name: buffer.to(dtype)
        for name, buffer in module.named_buffers()
        if buffer.is_floating_point() and buffer.dtype != dtype
    }


def split(module: nn.Module, vector: Tensor) -> dict[str, Tensor]:
    """Split a flat vector into the network's parameters by name.

    Args:
        module: Network.
        vector: (parameters,) flat parameters.

    Raises:
        ValueError: If the vector has the wrong shape.
    """
    named = list(module.named_parameters())
    sizes = [value.numel() for _, value in named]
    if vector.shape != (sum(sizes),):
        raise ValueError(
            f"vector must have the shape ({sum(sizes)},) of the module's parameters, "
            f"got {tuple(vector.shape)}"
        )
    parts = torch.split(vector, sizes)
    return {name: part.view_as(value) for (name, value), part in zip(named, parts, strict=True)}


def jacobians(
    module: nn.Module,
    vector: Tensor,
    inputs: Tensor,
    indices: Tensor | None = None,
    chunk_bytes: int = JACOBIAN_BYTES,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs and their derivatives in the parameters, for one chunk of samples at a time.

    Args:
        module: Network whose samples don't mix, in eval mode while a chunk is worked on.
        vector: Parameters at which to differentiate, (parameters,).
        inputs: Inputs, (samples, ...), left as they are.
        indices: Places of the parameters to differentiate in, (chosen,); all by default.
        chunk_bytes: Bound on the Jacobian of one chunk, in bytes.

    Yields:
        Outputs (chunk, outputs) and Jacobians (chunk, outputs, chosen).

    Raises:
        ValueError: If the vector has the wrong shape.
    """
    parameters = split(module, vector.detach())
    chosen = torch.arange(len(vector)) if indices is None else indices.cpu()
    names, places = _tensors_with(module, chosen)
    moving = {name: parameters.pop(name) for name in names}
    parameters |= _buffers_in(vector.dtype, module)

    def of_sample(values: dict[str, Tensor], sample: Tensor) -> tuple[Tensor, Tensor]:
        outputs = functional_call(module, {**parameters, **values}, (sample.unsqueeze(0),))
        return outputs.squeeze(0), outputs.squeeze(0)

    with eval_mode(module), torch.no_grad():
        width = outputs_at(module, vector, inputs[:1]).shape[1]
    columns = sum(value.numel() for value in moving.values())
    chunk = max(1, chunk_bytes // (width * columns * vector.element_size()))
    differentiate = vmap(jacrev(of_sample, has_aux=True), in_dims=(None, 0))
    has_no_rule = any(isinstance(layer, WITHOUT_VMAP) for layer in module.modules())
    for part in torch.split(inputs, chunk):
        with eval_mode(module):
            if has_no_rule:
                by_name, outputs = _row_by_row(module, moving, parameters, own_copy(part, vector))
            else:
                by_name, outputs = differentiate(moving, own_copy(part, vector))
        joined = torch.cat([by_name[name].flatten(2) for name in names], dim=2)
        yield outputs.detach(), joined[:, :, places.to(joined.device)].detach()


def _row_by_row(
    module: nn.Module, moving: dict[str, Tensor], others: dict[str, Tensor], inputs: Tensor
) -> tuple[dict[str, Tensor], Tensor]:
    """Derivatives of each output of each sample in turn, where vmap has no rule for a layer.

    Returns:
        Derivatives by name, (samples, outputs, *shape), and outputs (samples, outputs).
    """
    leaves = {name: value.detach().clone().requires_grad_() for name, value in moving.items()}
    with torch.inference_mode(False), torch.enable_grad():
        outputs = functional_call(module, {**others, **leaves}, (inputs,))
        rows = [
            torch.autograd.grad(
                output,
                [*leaves.values()],
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
            for output in outputs.flatten()
        ]
    by_name = {
        name: torch.stack(gradients).view(*outputs.shape, *leaves[name].shape)
        for name, gradients in zip(leaves, zip(*rows, strict=True), strict=True)
    }
    return by_name, outputs


def _tensors_with(module: nn.Module, chosen: Tensor) -> tuple[list[str], Tensor]:
    """Names of the parameter tensors that hold the chosen places, and the places among these."""
    names: list[str] = []
    position = torch.full((int(sum(p.numel() for p in module.parameters())),), -1)
    start, kept = 0, 0
    named = torch.zeros(len(position), dtype=torch.bool)
    named[chosen] = True
    for name, value in module.named_parameters():
        stop = start + value.numel()
        if bool(named[start:stop].any()):
            names.append(name)
            position[start:stop] = torch.arange(kept, kept + value.numel())
            kept += value.numel()
        start = stop
    return names, position[chosen]
