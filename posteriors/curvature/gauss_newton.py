"""The generalised Gauss-Newton matrix of a network over all or some of its parameters."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posteriors.curvature.likelihood import Likelihood, check_targets, output_factors
from posteriors.curvature.recording import require_separate_samples
from posteriors.networks.functional import eval_mode, flat_parameters, jacobians


def gauss_newton_matrix(
    module: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    likelihood: Likelihood = "categorical",
    indices: Tensor | None = None,
) -> Tensor:
    """Gauss-Newton matrix of the log likelihood, summed over samples, from per-sample Jacobians.

    Exact for any network whose samples don't mix, in eval mode. Memory: one chunk of Jacobians and
    the matrix itself, so for small networks or few parameters.

    Args:
        module: Network with outputs (samples, outputs).
        inputs: Inputs, (samples, ...), at least one sample.
        targets: As in `negative_log_likelihood`; only their kind matters.
        likelihood: What the outputs are parameters of.
        indices: Places of the parameters in the flat vector, (chosen,); all by default.

    Returns:
        Symmetric positive semi-definite matrix, (chosen, chosen), float64.

    Raises:
        UnsupportedLayerError: If samples are mixed.
        ValueError: If the targets don't suit the likelihood or the numbers of samples differ.
    """
    if inputs.ndim == 0 or len(inputs) == 0 or len(targets) != len(inputs):
        raise ValueError(
            f"inputs and targets must hold the same number of samples, at least one, "
            f"got shapes {tuple(inputs.shape)} and {tuple(targets.shape)}"
        )
    with eval_mode(module):
        require_separate_samples(module, inputs)
    vector = flat_parameters(module)
    size = len(vector) if indices is None else len(indices)
    matrix = torch.zeros(size, size, dtype=torch.float64, device=vector.device)
    for outputs, jacobian in jacobians(module, vector, inputs, indices):
        check_targets(outputs, targets, likelihood)
        factors = output_factors(outputs.double(), targets[:1], "ggn", likelihood)
        for column in factors:
            rows = torch.einsum("no,nop->np", column, jacobian.double())
            matrix.addmm_(rows.T, rows)
    return matrix
