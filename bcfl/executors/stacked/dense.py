"""Multilayer perceptrons, many at one time, by batched matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.executors.stacked.network import Stacked, Weights, chain_of

ACTIVATIONS: Mapping[type[nn.Module], Callable[[Tensor], Tensor]] = {
    nn.ReLU: torch.relu,
    nn.Tanh: torch.tanh,
    nn.Sigmoid: torch.sigmoid,
}
SLOPES: Mapping[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]] = {
    torch.relu: lambda values: values > 0,
    torch.tanh: lambda values: 1 - values.square(),
    torch.sigmoid: lambda values: values * (1 - values),
}
"""Derivative of each activation, from its values."""


@dataclass(frozen=True)
class DenseLayer:
    """A fully connected layer and what follows it.

    Attributes:
        weight: which of the network's tensors holds the weights.
        bias: which holds the offsets; None has none.
        activation: function of single numbers after it, or None.
    """

    weight: int
    bias: int | None
    activation: Callable[[Tensor], Tensor] | None = None

    def values(self, weights: Weights, inputs: Tensor) -> Tensor:
        """(problems, batch, outputs) after the activation."""
        matrix = weights[self.weight].transpose(1, 2)
        if self.bias is None:
            outputs = torch.bmm(inputs, matrix)
        else:
            outputs = torch.baddbmm(weights[self.bias].unsqueeze(1), inputs, matrix)
        return outputs if self.activation is None else self.activation(outputs)

    def through_activation(self, grad_output: Tensor, values: Tensor) -> Tensor:
        """The gradient before the activation, from that after it."""
        return (
            grad_output
            if self.activation is None
            else grad_output * SLOPES[self.activation](values)
        )


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """A chain of fully connected layers for many models, with its derivatives written out.

    Attributes:
        layers: in order of evaluation.
    """

    layers: tuple[DenseLayer, ...]

    @classmethod
    def of(cls, model: Model) -> DenseNetwork | None:
        """The network of a model, or None where it is anything else."""
        layers: list[DenseLayer] = []
        flat = len(model.input_shape) == 1
        for module, (weight, bias) in chain_of(model) or ():
            match module:
                case nn.Linear() if type(module) is nn.Linear and weight is not None and flat:
                    layers.append(DenseLayer(weight, bias))
                case nn.Flatten(start_dim=1, end_dim=-1):
                    flat = True
                case _ if type(module) in ACTIVATIONS and layers and not layers[-1].activation:
                    last = layers.pop()
                    layers.append(DenseLayer(last.weight, last.bias, ACTIVATIONS[type(module)]))
                case _:
                    return None
        return cls(tuple(layers)) if layers else None

    @property
    def mixes_samples(self) -> bool:
        """See `Network`."""
        return False

    def outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        return self._values(stacked.weights, inputs)[-1]

    def outputs_of_one(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`; a product for each client, as a client alone would do it."""
        many = [weight.expand(len(inputs), *weight.shape[1:]) for weight in stacked.weights]
        return self._values(many, inputs)[-1]

    def gradients(
        self,
        stacked: Stacked,
        inputs: Tensor,
        grad_output: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """See `Network`."""
        weights = stacked.weights
        values = self._values(weights, inputs)
        delta = grad_output(values[-1])
        for index, layer in reversed(list(enumerate(self.layers))):
            delta = layer.through_activation(delta, values[index + 1])
            into[layer.weight].copy_(torch.bmm(delta.transpose(1, 2), values[index]))
            if layer.bias is not None:
                torch.sum(delta, dim=1, out=into[layer.bias])
            if index:
                delta = torch.bmm(delta, weights[layer.weight])

    def diag_ggn(
        self, stacked: Stacked, inputs: Tensor, factors: Callable[[Tensor], Tensor], into: Weights
    ) -> None:
        """See `Network`.

        For a layer with inputs x and gradients d per column and sample that is the sum of d^2 x^2
        over both, a product of matrices of squares.
        """
        weights = stacked.weights
        values = self._values(weights, inputs)
        columns = factors(values[-1])
        for index, layer in reversed(list(enumerate(self.layers))):
            columns = layer.through_activation(columns, values[index + 1])
            total = columns.square().sum(dim=0)
            into[layer.weight].copy_(torch.bmm(total.transpose(1, 2), values[index].square()))
            if layer.bias is not None:
                torch.sum(total, dim=1, out=into[layer.bias])
            if index:
                columns = torch.matmul(columns, weights[layer.weight])

    def peak_numel(self, stacked: Stacked, inputs: Tensor) -> int:
        """See `Network`; all columns go back through a layer at one time."""
        widths = [stacked.weights[layer.weight].shape[1] for layer in self.layers]
        return inputs.numel() + 4 * widths[-1] * max(widths)

    def _values(self, weights: Weights, inputs: Tensor) -> Sequence[Tensor]:
        """Inputs of each layer, then the outputs."""
        values = [inputs.flatten(2)]
        for layer in self.layers:
            values.append(layer.values(weights, values[-1]))
        return values
