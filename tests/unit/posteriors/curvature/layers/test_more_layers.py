"""Convolutions in one and three dimensions, embeddings: against gradients of single samples."""

import pytest
import torch
from torch import nn

from posteriors import UnsupportedLayerError, diagonal_curvature, gauss_newton_matrix

TARGETS = torch.arange(6) % 3


class Words(nn.Module):
    """Means of word vectors; the same word occurs several times in a sample."""

    def __init__(self, **options):
        super().__init__()
        self.table, self.classifier = nn.Embedding(7, 4, **options), nn.Linear(4, 3)

    def forward(self, x):
        return self.classifier(self.table(x.long()).tanh().mean(1))


def sequence(*layers):
    return nn.Sequential(*layers, nn.Tanh(), nn.Flatten(), nn.LazyLinear(3))


WORDS = torch.tensor([[1, 1, 2], [0, 3, 0], [4, 4, 4], [6, 5, 4], [2, 0, 1], [1, 2, 1]]).float()
CASES = {
    "conv1d": (lambda: sequence(nn.Conv1d(4, 2, 3, stride=2, padding=1)), (6, 4, 7)),
    "conv1d-same": (lambda: sequence(nn.Conv1d(4, 2, 4, padding="same", dilation=2)), (6, 4, 7)),
    "conv1d-circular": (
        lambda: sequence(nn.Conv1d(4, 4, 3, padding=2, padding_mode="circular", groups=2)),
        (6, 4, 5),
    ),
    "conv3d": (lambda: sequence(nn.Conv3d(2, 3, (2, 1, 3), padding=(0, 1, 2))), (6, 2, 3, 2, 4)),
    "conv3d-valid": (lambda: sequence(nn.Conv3d(2, 2, 2, padding="valid")), (6, 2, 3, 2, 4)),
    "batch-norm-3d": (
        lambda: sequence(nn.Conv3d(2, 3, 2), nn.BatchNorm3d(3)),
        (6, 2, 3, 2, 4),
    ),
    "words": (Words, WORDS),
    "words-with-padding": (lambda: Words(padding_idx=0), WORDS),
}


def made(name):
    build, inputs = CASES[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        inputs = inputs if isinstance(inputs, torch.Tensor) else torch.randn(inputs)
        module = build()
        module(inputs)
        return module.double().eval(), inputs.double()


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_gauss_newton(name):
    module, inputs = made(name)
    right = gauss_newton_matrix(module, inputs, TARGETS).diagonal()
    if name == "words-with-padding":  # a row that never gets a gradient is not uncertain
        right[:4] = 0
    torch.testing.assert_close(diagonal_curvature(module, inputs, TARGETS), right)


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_empirical_fisher(name):
    module, inputs = made(name)
    total = 0
    for sample, target in zip(inputs.split(1), TARGETS.split(1), strict=True):
        loss = nn.functional.cross_entropy(module(sample), target)
        gradients = torch.autograd.grad(loss, [*module.parameters()])
        total = total + torch.cat([gradient.flatten() for gradient in gradients]).square()
    found = diagonal_curvature(module, inputs, TARGETS, kind="empirical_fisher")
    torch.testing.assert_close(found, total)


@pytest.mark.parametrize(
    "options", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}, {"sparse": True}]
)
def test_embeddings_without_a_gradient_per_sample(options):
    with pytest.raises(UnsupportedLayerError, match="neither max_norm, scale_grad_by_freq nor"):
        diagonal_curvature(Words(**options), WORDS, TARGETS)
