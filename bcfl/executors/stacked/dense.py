"""Multilayer perceptrons batched over models, by batched matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.executors.stacked.layers import Linear
from bcfl.executors.stacked.network import Stacked, Weights, chain_of

ACTIVATIONS: Mapping[type[nn.Module], Callable[[Tensor], Tensor]] = {
    nn.ReLU: torch.relu,
    nn.Tanh: torch.tanh,
    nn.Sigmoid: torch.sigmoid,
}
DERIVATIVES: Mapping[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]] = {
    torch.relu: lambda values: values > 0,
    torch.tanh: lambda values: 1 - values.square(),
    torch.sigmoid: lambda values: values * (1 - values),
}
"""Derivative of each activation, from its values."""


@dataclass(frozen=True)
class DenseLayer:
    """A fully connected layer and its activation.

    Attributes:
        linear: the layer.
        activation: elementwise function after it, or None.
    """

    linear: Linear
    activation: Callable[[Tensor], Tensor] | None = None

    def values(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """(models, batch, outputs) after the activation.

        Args:
            stacked: tensors of the models.
            inputs: (models, batch, inputs).
        """
        outputs = self.linear(stacked, inputs)
        return outputs if self.activation is None else self.activation(outputs)

    def through_activation(self, grad_output: Tensor, values: Tensor) -> Tensor:
        """The gradient before the activation, by the chain rule.

        Args:
            grad_output: (models, batch, outputs) gradient after the activation.
            values: (models, batch, outputs) after the activation.
        """
        return (
            grad_output
            if self.activation is None
            else grad_output * DERIVATIVES[self.activation](values)
        )


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """A chain of fully connected layers of many models, with explicit derivatives.

    Attributes:
        layers: in order of evaluation.
    """

    layers: tuple[DenseLayer, ...]

    @classmethod
    def of(cls, model: Model) -> DenseNetwork | None:
        """The network of a model, or None where it is no such chain."""
        layers: list[DenseLayer] = []
        flat = len(model.input_shape) == 1
        for module, (weight, bias) in chain_of(model) or ():
            match module:
                case nn.Linear() if type(module) is nn.Linear and weight is not None and flat:
                    layers.append(DenseLayer(Linear(weight, bias)))
                case nn.Flatten(start_dim=1, end_dim=-1) if type(module) is nn.Flatten:
                    flat = True
                case _ if type(module) in ACTIVATIONS and layers and not layers[-1].activation:
                    last = layers.pop()
                    layers.append(DenseLayer(last.linear, ACTIVATIONS[type(module)]))
                case _:
                    return None
        return cls(tuple(layers)) if layers else None

    @property
    def mixes_samples(self) -> bool:
        """See `Network`."""
        return False

    def outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        return self._values(stacked, inputs)[-1]

    def outputs_of_one(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`; one product per client, as a client alone would compute it."""
        weights = [weight.expand(len(inputs), *weight.shape[1:]) for weight in stacked.weights]
        return self._values(replace(stacked, weights=weights), inputs)[-1]

    def gradients(
        self,
        stacked: Stacked,
        inputs: Tensor,
        grad_output: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """See `Network`."""
        values = self._values(stacked, inputs)
        delta = grad_output(values[-1])
        for index, layer in reversed(list(enumerate(self.layers))):
            weight, bias = layer.linear.weight, layer.linear.bias
            delta = layer.through_activation(delta, values[index + 1])
            into[weight].copy_(torch.bmm(delta.transpose(1, 2), values[index]))
            if bias is not None:
                torch.sum(delta, dim=1, out=into[bias])
            if index:
                delta = torch.bmm(delta, stacked.weights[weight])

    def diag_ggn(
        self, stacked: Stacked, inputs: Tensor, factors: Callable[[Tensor], Tensor], into: Weights
    ) -> None:
        """See `Network`; all columns go back through a layer together."""
        values = self._values(stacked, inputs)
        columns = factors(values[-1])
        for place in into:
            place.zero_()
        for index, layer in reversed(list(enumerate(self.layers))):
            columns = layer.through_activation(columns, values[index + 1])
            prepared = layer.linear.prepare(stacked, values[index])
            layer.linear.add_squares(prepared, columns, into)
            if index:
                columns = torch.matmul(columns, stacked.weights[layer.linear.weight])

    def peak_numel(self, stacked: Stacked, inputs: Tensor) -> int:
        """See `Network`."""
        widths = [stacked.weights[layer.linear.weight].shape[1] for layer in self.layers]
        return inputs.numel() + 4 * widths[-1] * max(widths)

    def _values(self, stacked: Stacked, inputs: Tensor) -> Sequence[Tensor]:
        """Inputs of each layer, then the outputs."""
        values = [inputs.flatten(2)]
        for layer in self.layers:
            values.append(layer.values(stacked, values[-1]))
        return values
