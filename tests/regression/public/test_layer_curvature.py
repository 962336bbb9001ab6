"""Diagonal curvature of layers that other libraries get wrong: exact, or refused by name.

Reported to neighbouring projects: per-sample gradients of BatchNorm, LSTM and padded convolutions.
"""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from posteriors import UnsupportedLayerError, diagonal_curvature


class Two(nn.Module):
    """A first and a last layer, joined by whatever a subclass does."""

    def __init__(self, inputs=4):
        super().__init__()
        self.layer, self.last = nn.Linear(inputs, 4), nn.Linear(4, 3)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.last = nn.Linear(50, 3)

    def forward(self, x):
        return self.last((x + torch.relu(self.norm(self.conv(x)))).flatten(1))


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(4, 4) for _ in range(3))
        self.norm, self.last = nn.LayerNorm(4), nn.Linear(4, 3)

    def forward(self, x):
        attention = torch.softmax(self.query(x) @ self.key(x).transpose(1, 2) / 2, -1)
        return self.last(self.norm(x + attention @ self.value(x)).mean(1))


class Detached(Two):
    def forward(self, x):
        hidden = self.layer(x)
        return self.last(hidden.detach() + torch.tanh(hidden))


class Unused(Two):
    def forward(self, x):
        return self.last(x)


class Plain(Two):
    def forward(self, x):
        return self.last(torch.tanh(self.layer(x)))


class Checkpointed(Two):
    def forward(self, x):
        def inner(z):
            return torch.tanh(self.layer(z))

        return self.last(checkpoint(inner, x, use_reentrant=False))


class Siamese(Two):
    """Both halves of a sample go through one layer, as two rows of one batch."""

    def __init__(self):
        super().__init__(2)

    def forward(self, x):
        left, right = self.layer(torch.cat([x[:, :2], x[:, 2:]])).chunk(2)
        return self.last(torch.tanh(left) * torch.sigmoid(right))


class Centred(Two):
    def forward(self, x):
        hidden = self.layer(x)
        return self.last(torch.tanh(hidden - hidden.mean(0)))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.scale = nn.Linear(4, 3), nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return self.last(x) * self.scale


class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.last = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.attention(x, x, x)[0].mean(1))


def conv(inputs, outputs, kernel, size, **options):
    layer = nn.Conv2d(inputs, outputs, kernel, **options)
    return nn.Sequential(layer, nn.Tanh(), nn.Flatten(), nn.Linear(size, 3))


def in_place():
    first = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True))
    second = nn.Sequential(nn.Conv2d(3, 3, 2), nn.LeakyReLU(inplace=True))
    return nn.Sequential(first, second, nn.Flatten(), nn.Linear(12, 3))


def trained_norm():
    norm = nn.BatchNorm2d(3)
    network = nn.Sequential(nn.Conv2d(2, 3, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(27, 3))
    network(torch.randn(20, 2, 5, 5) * 3 + 1)
    return network


def group_norm():
    norm = nn.GroupNorm(2, 4)
    return nn.Sequential(nn.Conv2d(2, 4, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(36, 3))


IMAGES, SEQUENCES, VECTORS = (5, 2, 5, 5), (5, 6, 4), (5, 4)
EXACT = {
    "circular": (lambda: conv(2, 3, 3, 75, padding=1, padding_mode="circular"), IMAGES),
    "reflect": (lambda: conv(2, 3, 3, 147, padding=2, padding_mode="reflect"), IMAGES),
    "replicate": (lambda: conv(2, 3, 3, 75, padding=1, padding_mode="replicate"), IMAGES),
    "same-dilated": (lambda: conv(2, 3, (2, 4), 75, padding="same", dilation=2), IMAGES),
    "groups-stride": (lambda: conv(2, 4, 3, 16, stride=2, groups=2, bias=False), IMAGES),
    "in-place-activations": (in_place, IMAGES),
    "trained-batch-norm": (trained_norm, IMAGES),
    "group-norm": (group_norm, IMAGES),
    "residual": (Residual, IMAGES),
    "self-attention": (SelfAttention, SEQUENCES),
    "detached": (Detached, VECTORS),
    "unused": (Unused, VECTORS),
    "conv1d": (
        lambda: nn.Sequential(nn.Conv1d(6, 2, 2), nn.Flatten(), nn.Linear(6, 3)),
        SEQUENCES,
    ),
}
EXACT_OR_REFUSED = {
    "same-circular": (
        lambda: conv(2, 3, 4, 75, padding="same", padding_mode="circular"),
        IMAGES,
    ),
    "siamese": (Siamese, VECTORS),
    "own-scale": (Scaled, VECTORS),
    "multi-head": (MultiHead, SEQUENCES),
    "prelu": (lambda: nn.Sequential(nn.Linear(4, 3), nn.PReLU()), VECTORS),
    "instance-norm": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3), nn.InstanceNorm2d(3, affine=True), nn.Flatten(), nn.Linear(27, 3)
        ),
        IMAGES,
    ),
}


def made(build, shape):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build(), torch.randn(shape), torch.arange(shape[0]) % 3


def assert_exact(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.max()))


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", EXACT)
def test_it_is_exact(true_diagonal, name):
    network, inputs, classes = made(*EXACT[name])
    found = diagonal_curvature(network, inputs, classes)
    assert_exact(found, true_diagonal(network, inputs))


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")
@pytest.mark.parametrize("name", EXACT_OR_REFUSED)
def test_it_is_exact_or_refused(true_diagonal, name):
    network, inputs, classes = made(*EXACT_OR_REFUSED[name])
    try:
        found = diagonal_curvature(network, inputs, classes)
    except UnsupportedLayerError:
        return
    assert_exact(found, true_diagonal(network, inputs))


def test_activations_that_are_computed_again_change_nothing():
    network, inputs, classes = made(Checkpointed, VECTORS)
    plain = Plain()
    plain.load_state_dict(network.state_dict())
    expected = diagonal_curvature(plain, inputs, classes)
    assert_exact(diagonal_curvature(network, inputs, classes), expected)


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (Centred, VECTORS),
        (lambda: nn.Sequential(nn.LSTM(4, 3)), SEQUENCES),
    ],
    ids=["centred-over-the-batch", "recurrent"],
)
def test_what_has_no_curvature_per_sample_is_refused(build, shape):
    network, inputs, classes = made(build, shape)
    with pytest.raises(UnsupportedLayerError):
        diagonal_curvature(network, inputs, classes)
