"""Diagonal curvature of a network's log likelihood in its parameters."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor, nn

from posteriors.curvature.layers.rules import UnsupportedLayerError, layers_with_parameters
from posteriors.curvature.likelihood import (
    CurvatureKind,
    Likelihood,
    check_targets,
    draw_noise,
    draw_targets,
    output_factors,
)
from posteriors.curvature.recording import Call, recorded, require_exact_rules
from posteriors.networks.channels import as_convolutions_like_it
from posteriors.networks.functional import eval_mode

__all__ = ["UnsupportedLayerError", "diagonal_curvature"]

CHUNK_BYTES = 32 * 2**20
"""Default bound on the gradients held at once, in bytes."""


def diagonal_curvature(  # noqa: PLR0913 - keywords with defaults
    module: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    *,
    kind: CurvatureKind = "ggn",
    likelihood: Likelihood = "categorical",
    chunk_bytes: int = CHUNK_BYTES,
    generator: torch.Generator | None = None,
    check: bool = True,
) -> Tensor:
    """Diagonal of the generalised Gauss-Newton matrix, or of the empirical Fisher matrix.

    Summed over the samples. `ggn` and `empirical_fisher` are exact; `mc_ggn` is an unbiased
    estimate of `ggn` from one drawn target per sample, at the price of a single column. The module
    runs in eval mode (dropout off, running statistics frozen) and is left as it was: its mode,
    buffers and `.grad` don't change. Linear layers, convolutions, embeddings, BatchNorm, GroupNorm
    and LayerNorm layers may be combined by anything without parameters that treats samples
    independently; a layer may be called only once, and no parameter used outside its layer. This is
    checked on up to three samples, against gradients by autograd.

    A factor of the output curvature, a column per output or one less, is sent back through the
    network; the squares of the per-sample parameter gradients that it causes are summed (Dangel
    et al., 2020, "BackPACK", section 2).

    Memory: gradients with respect to layer outputs are columns x samples x (sum of the sizes of
    all layer outputs) numbers. Samples are taken in chunks that keep these below `chunk_bytes`;
    activations and unfolded inputs of one chunk come on top, about 100 MB in all for two 5 x 5
    convolutions (16 and 32 channels) on images of 28 x 28, however many samples.

    Args:
        module: Network with outputs (samples, outputs).
        inputs: Inputs, (samples, ...), at least one sample.
        targets: As in `negative_log_likelihood`.
        kind: `ggn`; `empirical_fisher`, the sum of squared per-sample loss gradients; or `mc_ggn`,
            the same with targets drawn from the model's prediction.
        likelihood: What the outputs are parameters of.
        chunk_bytes: Bound on the gradients held at once, in bytes; it doesn't change the result.
        generator: Source of the drawn targets; only `mc_ggn` needs and uses it.
        check: Whether the network is compared with autograd first; needed once per architecture.

    Returns:
        Curvature per parameter in the order of `module.parameters()`, (parameters,), at least 0;
        zero for parameters that need no gradient.

    Raises:
        UnsupportedLayerError: If a layer has parameters but no rule, is called twice, or a forward
            of its own; if a parameter is used twice; or if samples are mixed.
        ValueError: If names are unknown, shapes don't fit, or `mc_ggn` has no generator.

    Example:
        >>> import torch
        >>> from posteriors import diagonal_curvature
        >>> network = torch.nn.Linear(1, 2)
        >>> _ = torch.nn.init.zeros_(network.weight), torch.nn.init.zeros_(network.bias)
        >>> diagonal_curvature(network, torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1]))
        tensor([1.2500, 1.2500, 0.5000, 0.5000])
    """
    _check_names(kind, likelihood)
    if inputs.ndim == 0 or len(inputs) == 0 or len(targets) != len(inputs):
        raise ValueError(
            f"inputs and targets must hold the same number of samples, at least one, "
            f"got shapes {tuple(inputs.shape)} and {tuple(targets.shape)}"
        )
    layers = layers_with_parameters(module)
    with eval_mode(module), torch.inference_mode(False), torch.enable_grad():
        inputs = inputs.clone() if inputs.is_inference() else inputs
        inputs = as_convolutions_like_it(module, inputs)
        total = {id(p): torch.zeros_like(p, requires_grad=False) for p in module.parameters()}
        if check:
            require_exact_rules(module, layers, inputs)
        outputs, calls = recorded(module, layers, inputs[:1].detach())
        outputs, size = outputs.detach(), sum(call.output_bytes for call in calls)
        check_targets(outputs, targets, likelihood)
        noise = draw_noise(kind, outputs.expand(len(inputs), -1), likelihood, generator)
        columns = output_factors(outputs, targets[:1], kind, likelihood)
        chunk = max(1, chunk_bytes // max(1, size * len(columns)))
        for start in range(0, len(inputs), chunk):
            part = slice(start, start + chunk)
            outputs, calls = recorded(module, layers, inputs[part].detach())
            labels = (
                targets[part] if noise is None else draw_targets(outputs, noise[part], likelihood)
            )
            columns = output_factors(outputs, labels, kind, likelihood)
            _add_squares(total, calls, outputs, columns)
        return torch.cat([total[id(p)].flatten() for p in module.parameters()])


def _add_squares(
    total: dict[int, Tensor], calls: list[Call], outputs: Tensor, columns: Tensor
) -> None:
    """Send the columns back and add each layer's squared per-sample gradients to the totals."""
    reached = [call for call in calls if call.edge is not None]
    edges = [call.edge for call in reached if call.edge is not None]
    if not edges or len(columns) == 0:
        return
    last = len(columns) - 1
    by_column = [
        torch.autograd.grad(outputs, edges, column, retain_graph=i < last, allow_unused=True)
        for i, column in enumerate(columns)
    ]
    for call, gradients in zip(reached, zip(*by_column, strict=True), strict=True):
        if gradients[0] is None:
            continue
        squares = call.squares(gradients)
        parameters = (call.layer.weight, getattr(call.layer, "bias", None))
        for parameter, square in zip(parameters, squares, strict=True):
            if isinstance(parameter, nn.Parameter) and parameter.requires_grad:
                total[id(parameter)] += square.view_as(parameter)


def _check_names(kind: str, likelihood: str) -> None:
    if kind not in get_args(CurvatureKind):
        raise ValueError(f"kind must be one of {', '.join(get_args(CurvatureKind))}, got {kind!r}")
    if likelihood not in get_args(Likelihood):
        allowed = ", ".join(get_args(Likelihood))
        raise ValueError(f"likelihood must be one of {allowed}, got {likelihood!r}")
