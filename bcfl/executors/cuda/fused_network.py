"""Convolutional networks batched over models, by Triton kernels where they are faster.

Not timed in this version, for lack of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from typing import TypeAlias

import torch
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.executors.stacked.grouped import GroupedNetwork
from bcfl.executors.stacked.layers import Linear
from bcfl.executors.stacked.network import Stacked, Weights, chain_of, gradients_by_autograd

Layer: TypeAlias = Callable[[Stacked, Tensor], Tensor]
Link: TypeAlias = tuple[nn.Module, tuple[int | None, int | None]]

MOST_NUMBERS = 2**31 - 1
"""Entries of one model's activations at most: the kernels index them in 32 bits."""


@lru_cache
def has_triton() -> bool:
    """Whether Triton is installed; PyTorch for CUDA brings it along."""
    return find_spec("triton") is not None


@dataclass(frozen=True, eq=False)
class FusedNetwork:
    """A chain of convolutions, ReLU with pooling, and linear layers, for many models on a GPU.

    Images are (problems, batch, height, width, channels). Products are in TF32 where torch allows
    it, and else by three TF32 products at the precision of float32.

    Attributes:
        layers: functions of the models and the previous activations.
        plain: the same network by torch's own layers, for curvatures and for more images of one
            model than the kernels can index.
        numbers: entries of the largest activation of one image.
    """

    layers: tuple[Layer, ...]
    plain: GroupedNetwork
    numbers: int

    @classmethod
    def of(cls, model: Model) -> FusedNetwork | None:
        """The network of a model, or None where it has unsupported layers or Triton is missing.

        Supported are convolutions of stride 1, ReLU, each followed by 2 x 2 maximum pooling or not,
        flattening and linear layers; at least one convolution.
        """
        chain, plain = chain_of(model) or [], GroupedNetwork.of(model)
        convolves = any(type(module) is nn.Conv2d for module, _ in chain)
        if plain is None or not convolves or not has_triton() or len(model.input_shape) != 3:
            return None
        layers: list[Layer] = []
        while chain:
            layer, taken = _first_of(chain)
            if layer is None:
                return None
            layers.append(layer)
            chain = chain[taken:]
        return cls(tuple(layers), plain, _numbers(model))

    mixes_samples = False

    def outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        if inputs.shape[1] > self._most_images:
            return self.plain.outputs(stacked, inputs)
        return self._outputs(stacked, inputs)

    def outputs_of_one(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        """See `Network`."""
        parts = torch.split(inputs.flatten(0, 1), max(1, self._most_images))
        outputs = [self.outputs(stacked, part.unsqueeze(0)).squeeze(0) for part in parts]
        return torch.cat(outputs).view(*inputs.shape[:2], -1)

    def gradients(
        self,
        stacked: Stacked,
        inputs: Tensor,
        grad_output: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """See `Network`."""
        if inputs.shape[1] > self._most_images:
            self.plain.gradients(stacked, inputs, grad_output, into)
            return
        gradients_by_autograd(lambda live: self._outputs(live, inputs), stacked, grad_output, into)

    def diag_ggn(
        self,
        stacked: Stacked,
        inputs: Tensor,
        factors: Callable[[Tensor], Tensor],
        into: Weights,
    ) -> None:
        """See `Network`."""
        self.plain.diag_ggn(stacked, inputs, factors, into)

    def peak_numel(self, stacked: Stacked, inputs: Tensor) -> int:
        """See `Network`."""
        return self.plain.peak_numel(stacked, inputs)

    @property
    def _most_images(self) -> int:
        """Per model and call."""
        return MOST_NUMBERS // self.numbers

    def _outputs(self, stacked: Stacked, inputs: Tensor) -> Tensor:
        values = inputs.permute(0, 1, 3, 4, 2)
        for layer in self.layers:
            values = layer(stacked, values)
        return values


def _numbers(model: Model) -> int:
    """Entries of the largest activation of one image around a convolution, with its padding."""
    most = prod(model.input_shape)

    def measure(module: nn.Module, inputs: tuple[Tensor, ...], outputs: Tensor) -> None:
        nonlocal most
        assert isinstance(module, nn.Conv2d)
        sizes = [
            size + max(2 * padding, kernel - 1)
            for size, padding, kernel in zip(
                inputs[0].shape[2:], _pair(module.padding), module.kernel_size, strict=True
            )
        ]
        most = max(most, max(module.in_channels, module.out_channels) * prod(sizes))

    network = model.module().eval()
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(measure)
    with torch.no_grad():
        network(torch.zeros(1, *model.input_shape))
    return most


def _first_of(chain: Sequence[Link]) -> tuple[Layer | None, int]:
    """A function for the first layer or two, and how many layers of the chain it covers."""
    module, (weight, bias) = chain[0]
    following = chain[1][0] if len(chain) > 1 else None
    match module:
        case nn.Conv2d() if weight is not None and _is_simple(module):
            return _Convolution(weight, bias, _pair(module.padding)), 1
        case nn.ReLU() if type(following) is nn.MaxPool2d and _halves(following):
            return _rectified_pool, 2
        case nn.ReLU():
            return lambda _, values: values.relu(), 1
        case nn.Flatten(start_dim=1, end_dim=-1):
            return _flattened, 1
        case nn.Linear() if weight is not None:
            return Linear(weight, bias), 1
    return None, 0


def _is_simple(module: nn.Conv2d) -> bool:
    plain = type(module) is nn.Conv2d and module.padding_mode == "zeros" and module.groups == 1
    padded = not isinstance(module.padding, str)
    return plain and padded and (*module.stride, *module.dilation) == (1, 1, 1, 1)


def _halves(module: nn.MaxPool2d) -> bool:
    sizes = (_pair(module.kernel_size), _pair(module.stride), _pair(module.padding))
    plain = sizes == ((2, 2), (2, 2), (0, 0)) and _pair(module.dilation) == (1, 1)
    return plain and not module.ceil_mode and not module.return_indices


def _pair(size: int | tuple[int, ...] | str) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _flattened(stacked: Stacked, values: Tensor) -> Tensor:
    del stacked
    return values.permute(0, 1, 4, 2, 3).flatten(2) if values.dim() == 5 else values.flatten(2)


def _rectified_pool(stacked: Stacked, values: Tensor) -> Tensor:
    from bcfl.executors.cuda.fused import RectifiedPool

    del stacked
    pooled: Tensor = RectifiedPool.apply(values)  # type: ignore[no-untyped-call]
    return pooled


@dataclass(frozen=True)
class _Convolution:
    weight: int
    bias: int | None
    padding: tuple[int, int]

    def __call__(self, stacked: Stacked, values: Tensor) -> Tensor:
        from bcfl.executors.cuda.fused import Convolution

        bias = None if self.bias is None else stacked.weights[self.bias]
        kernels = stacked.weights[self.weight]
        outputs: Tensor = Convolution.apply(values, kernels, bias, self.padding)  # type: ignore[no-untyped-call]
        return outputs
