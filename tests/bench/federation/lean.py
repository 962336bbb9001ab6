"""What one would write in plain torch for speed: the baseline of local training and scoring."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy


class LeanLoop:
    """Clients one after the other in one network whose parameters are updated in place."""

    def __init__(self, build, clients, steps=10, batch=32, rate=0.1, momentum=0.9):
        self.network, self.clients = build(), clients
        self.parameters = list(self.network.parameters())
        self.velocity = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.steps, self.batch, self.rate, self.momentum = steps, batch, rate, momentum
        self.random = np.random.default_rng(0)

    def load(self, tensors):
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, tensors)

    def train(self, tensors):
        """Every client from the same start; the trained tensors of each."""
        return [self._one(tensors, inputs, targets) for inputs, targets in self.clients]

    def _one(self, tensors, inputs, targets):
        self.load(tensors)
        torch._foreach_zero_(self.velocity)
        size = min(self.batch, len(targets))
        passes = -(-self.steps * size // len(targets))
        stream = np.concatenate([self.random.permutation(len(targets)) for _ in range(passes)])
        for rows in torch.from_numpy(stream[: self.steps * size].reshape(self.steps, size)):
            loss = cross_entropy(self.network(inputs[rows]), targets[rows])
            slopes = torch.autograd.grad(loss, self.parameters)
            with torch.no_grad():
                torch._foreach_mul_(self.velocity, self.momentum)
                torch._foreach_add_(self.velocity, slopes)
                torch._foreach_add_(self.parameters, self.velocity, alpha=-self.rate)
        return [parameter.detach().clone() for parameter in self.parameters]

    def score(self, models):
        """(clients, models) summed losses."""
        losses = np.empty((len(self.clients), len(models)))
        with torch.no_grad():
            for column, tensors in enumerate(models):
                self.load(tensors)
                for row, (inputs, targets) in enumerate(self.clients):
                    loss = cross_entropy(self.network(inputs), targets, reduction="sum")
                    losses[row, column] = float(loss)
        return losses


def network():
    """Two 5 x 5 convolutions on images of 28 x 28: 28,938 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 10),
    )  # fmt: skip
