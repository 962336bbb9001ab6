"""Diagonal curvature against the full Jacobian of each sample (torch.func), in float64."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev

from posteriors.curvature.diagonal import diagonal_curvature

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")


def brute_force(module, inputs, targets, kind, likelihood):
    """Sum over samples of diag(Jᵀ H J), or of the squared gradient of the loss."""
    parameters = {name: value.detach() for name, value in module.named_parameters()}
    total = torch.zeros(())
    for sample, target in zip(inputs, targets, strict=True):

        def predict(values, sample=sample):
            return functional_call(module, values, (sample.unsqueeze(0),)).squeeze(0)

        def loss(values, predict=predict, target=target):
            if likelihood == "gaussian":
                return 0.5 * (predict(values) - target).square().sum()
            return -predict(values).log_softmax(0)[target]

        if kind == "empirical_fisher":
            total = total + flatten(jacrev(loss)(parameters), 0).square()
            continue
        jacobian = flatten(jacrev(predict)(parameters), 1)
        outputs = predict(parameters)
        hessian = torch.eye(len(outputs), dtype=outputs.dtype)
        if likelihood == "categorical":
            p = outputs.softmax(0)
            hessian = torch.diag(p) - torch.outer(p, p)
        total = total + torch.einsum("ip,ij,jp->p", jacobian, hessian, jacobian)
    return total


def flatten(derivatives, axis):
    return torch.cat([value.flatten(axis) for value in derivatives.values()], axis)


class Residual(nn.Module):
    """Skip connection, in-place activations, functional operations, several branches."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        trunk = nn.functional.relu_(self.norm(self.first(x)))
        branch = self.second(trunk)
        branch += trunk
        return self.head(nn.functional.gelu(branch).mean((2, 3)))


def convolutional(**options):
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, **options), nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(32, 3),
    )  # fmt: skip


NORMALISATIONS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)

MODULES = {
    "single layer": (lambda: nn.Linear(5, 3), (5,)),
    "mlp": (
        lambda: nn.Sequential(
            nn.Linear(6, 7), nn.ReLU(), nn.Dropout(0.5), nn.Linear(7, 4, bias=False), nn.GELU(),
            nn.Linear(4, 3),
        ),
        (6,),
    ),
    "mlp with batch norm": (
        lambda: nn.Sequential(
            nn.Linear(6, 7), nn.BatchNorm1d(7), nn.ReLU(inplace=True), nn.Linear(7, 3)
        ),
        (6,),
    ),
    "linear over positions": (
        lambda: nn.Sequential(
            nn.Linear(4, 5), nn.BatchNorm1d(3), nn.Tanh(), nn.Flatten(), nn.Linear(15, 3)
        ),
        (3, 4),
    ),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 3),
            nn.LeakyReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 3),
        ),
        (1, 8, 8),
    ),
    "cnn with batch norm": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True),
            nn.MaxPool2d(2), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
            nn.Linear(16, 3),
        ),
        (1, 8, 8),
    ),
    "residual": (Residual, (2, 5, 5)),
    "group norm": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(inplace=True),
            nn.MaxPool2d(2), nn.Conv2d(4, 3, 3), nn.GroupNorm(1, 3), nn.Tanh(), nn.Flatten(),
            nn.Linear(12, 6), nn.GroupNorm(3, 6), nn.Tanh(), nn.Linear(6, 3),
        ),
        (1, 8, 8),
    ),
    "group norm without a scale": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.GroupNorm(4, 4, affine=False), nn.Tanh(), nn.Flatten(),
            nn.Linear(36, 3),
        ),
        (2, 5, 5),
    ),
    "layer norm": (
        lambda: nn.Sequential(
            nn.Linear(6, 5), nn.LayerNorm(5), nn.ReLU(inplace=True), nn.Linear(5, 4),
            nn.LayerNorm(4, bias=False), nn.Tanh(), nn.Linear(4, 3),
        ),
        (6,),
    ),
    "layer norm over positions": (
        lambda: nn.Sequential(
            nn.Linear(4, 5), nn.LayerNorm(5), nn.Tanh(), nn.LayerNorm((3, 5)), nn.Flatten(),
            nn.Linear(15, 3),
        ),
        (3, 4),
    ),
    "layer norm of images": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3), nn.LayerNorm((3, 3, 3)), nn.Tanh(), nn.Flatten(),
            nn.Linear(27, 3),
        ),
        (2, 5, 5),
    ),
    "stride and dilation": (
        lambda: convolutional(stride=(2, 1), padding=(2, 1), dilation=(1, 2)), (4, 7, 6)
    ),
    "depthwise": (lambda: convolutional(groups=4, padding=1), (4, 6, 5)),
    "two groups": (lambda: convolutional(groups=2, bias=False), (4, 6, 5)),
    "same padding": (lambda: convolutional(padding="same", dilation=2), (4, 6, 5)),
    "same padding, even kernel": (
        lambda: nn.Sequential(
            nn.Conv2d(4, 2, (2, 4), padding="same"), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(2, 3),
        ),
        (4, 6, 5),
    ),
    "valid padding": (lambda: convolutional(padding="valid"), (4, 6, 5)),
    "circular padding": (
        lambda: convolutional(padding=(2, 1), padding_mode="circular"), (4, 6, 5)
    ),
}  # fmt: skip


def build(name):
    make, shape = MODULES[name]
    with torch.random.fork_rng():
        torch.manual_seed(7)
        module = make().double()
        for layer in module.modules():
            if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
                layer.running_mean.normal_()
                layer.running_var.uniform_(0.5, 2.0)
            if isinstance(layer, NORMALISATIONS):
                for parameter in layer.parameters():
                    nn.init.normal_(parameter)
        inputs = torch.randn(6, *shape, dtype=torch.float64)
        values = torch.randn(6, 3, dtype=torch.float64)
    return module.eval(), inputs, torch.tensor([0, 1, 2, 2, 0, 1]), values


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("kind", ["ggn", "empirical_fisher"])
@pytest.mark.parametrize("likelihood", ["categorical", "gaussian"])
def test_curvature_equals_brute_force(name, kind, likelihood):
    module, inputs, classes, values = build(name)
    targets = classes if likelihood == "categorical" else values
    expected = brute_force(module, inputs, targets, kind, likelihood)
    for chunk_bytes in (1, 2**25):
        actual = diagonal_curvature(
            module, inputs, targets, kind=kind, likelihood=likelihood, chunk_bytes=chunk_bytes
        )
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-14)
        assert bool((actual >= 0).all())


@pytest.mark.parametrize("name", ["mlp", "cnn", "cnn with batch norm"])
def test_float32_agrees_to_five_digits(name):
    module, inputs, classes, _ = build(name)
    expected = brute_force(module, inputs, classes, "ggn", "categorical")
    actual = diagonal_curvature(module.float(), inputs.float(), classes)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-6)


def weights_of_draws(module, inputs, likelihood, num_draws):
    generator = torch.Generator().manual_seed(11)
    targets = torch.zeros(len(inputs), dtype=torch.int64)
    targets = targets if likelihood == "categorical" else torch.zeros(len(inputs), 3).double()
    return torch.stack(
        [
            diagonal_curvature(
                module, inputs, targets, kind="mc_ggn", likelihood=likelihood, generator=generator
            )
            for _ in range(num_draws)
        ]
    )


@pytest.mark.parametrize("name", ["mlp", "group norm"])
@pytest.mark.parametrize("likelihood", ["categorical", "gaussian"])
def test_drawn_targets_give_the_gauss_newton_matrix_on_average(name, likelihood):
    """Mean over 400 draws within 4.5 standard errors, in every parameter and in their sum."""
    module, inputs, classes, values = build(name)
    targets = classes if likelihood == "categorical" else values
    exact = brute_force(module, inputs, targets, "ggn", likelihood)
    draws = weights_of_draws(module, inputs, likelihood, 400)
    spread = draws.std(0) / 20
    assert bool(((draws.mean(0) - exact).abs() <= 4.5 * spread + 1e-12).all())
    total, error = draws.sum(1).mean(), draws.sum(1).std() / 20
    assert abs(float(total - exact.sum())) < 4 * float(error)
    assert float(error) < 0.1 * float(total)


def test_two_and_one_outputs():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).double()
        single = nn.Linear(4, 1).double()
        inputs = torch.randn(6, 4, dtype=torch.float64)
    classes = torch.tensor([0, 1, 1, 0, 0, 1])
    expected = brute_force(module, inputs, classes, "ggn", "categorical")
    torch.testing.assert_close(diagonal_curvature(module, inputs, classes), expected)
    nothing = diagonal_curvature(single, inputs, torch.zeros(6, dtype=torch.int64))
    assert nothing.tolist() == [0.0] * 5
