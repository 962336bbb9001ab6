"""The diagonal of the Gauss-Newton matrix by its definition."""

import pytest
import torch
from torch.func import functional_call, jacrev


def true_diagonal_of(module, inputs):
    """(parameters,) sum over samples of the diagonal of J' (diag(p) - p p') J."""
    module.eval()
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    total = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for sample in inputs:

        def logits(values, sample=sample):
            return functional_call(module, values, (sample[None].clone(),))[0]

        p = logits(parameters).softmax(0)
        factor = torch.diag(p) - torch.outer(p, p)
        for name, jacobian in jacrev(logits)(parameters).items():
            rows = jacobian.flatten(1)
            total[name] += (rows * (factor @ rows)).sum(0).view_as(total[name])
    return torch.cat([value.flatten() for value in total.values()])


@pytest.fixture
def true_diagonal():
    return true_diagonal_of
