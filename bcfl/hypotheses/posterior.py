"""Posteriors over cluster models, in parameter blocks that hypotheses share by identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.runtime.seeds import lineage_key
from posteriors import DiagonalGaussian


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """The posterior over one block of parameters.

    Attributes:
        key: hash of the lineage (origin, contributors, rule, round); equal keys, equal content.
        name: name of the block in the model.
        gaussian: posterior after the last update; mean of shape (parameters,).
        base: initial prior of the block.
        prior: prior that clients are sent: the posterior's mean, with the precision that the memory
            leaves.
        buffers: (buffers,) running statistics, which have no posterior.
        is_zero: whether all parameters are zero, so that the block need not be sent.
        moments: (2, parameters) moments of the updates that the server keeps, if it keeps any.
    """

    key: str
    name: str
    gaussian: DiagonalGaussian
    base: DiagonalGaussian
    prior: DiagonalGaussian
    buffers: Tensor
    is_zero: bool = False
    moments: Tensor | None = None

    def __repr__(self) -> str:
        return f"Block({self.name}, {self.gaussian.mean.shape[-1]} parameters, key {self.key[:8]})"


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior over all parameters of one cluster's model.

    Attributes:
        blocks: one per block of the model, in the model's order. Blocks of global scope are the
            same object in every cluster.
    """

    blocks: tuple[Block, ...]

    def __repr__(self) -> str:
        return f"Posterior({self.num_parameters} parameters, key {self.key[:8]})"

    @cached_property
    def key(self) -> str:
        """Equal keys mean equal posteriors."""
        keys = [block.key for block in self.blocks]
        return keys[0] if len(keys) == 1 else lineage_key("blocks", *keys)

    @property
    def num_parameters(self) -> int:
        """Number of parameters over all blocks."""
        return sum(block.gaussian.mean.shape[-1] for block in self.blocks)

    @property
    def curved(self) -> bool:
        """Whether some block has one precision per parameter, from curvature."""
        return any(block.gaussian.precision.numel() > 1 for block in self.blocks)

    def mean(self, model: Model) -> Tensor:
        """(parameters,) flat mean in the model's layout."""
        return model.join({b.name: b.gaussian.mean for b in self.blocks})

    def precision(self, model: Model) -> Tensor:
        """(parameters,) flat precision in the model's layout."""
        return model.join({b.name: _full(b.gaussian) for b in self.blocks})

    def gaussian(self, model: Model | None = None) -> DiagonalGaussian:
        """The posterior over all parameters in the model's layout.

        Raises:
            ValueError: there are several blocks and no model is given.
        """
        if model is None:
            if len(self.blocks) > 1:
                raise ValueError("model must be given to join the blocks of a divided model")
            return self.blocks[0].gaussian
        return DiagonalGaussian(self.mean(model), self.precision(model))

    def prior_precision(self, model: Model) -> Tensor:
        """(parameters,) flat precision of the prior that clients are sent."""
        return model.join({b.name: _full(b.prior) for b in self.blocks})

    def with_parameters(self, model: Model, key: str, mean: Tensor, buffers: Tensor) -> Posterior:
        """A point at other parameters, such as those that a client has trained.

        Args:
            model: the architecture.
            key: identifies the origin of the parameters.
            mean: (parameters,) flat.
            buffers: (buffers,) flat.
        """
        parts = model.split(mean, buffers)
        blocks = []
        for block in self.blocks:
            part, part_buffers = parts[block.name]
            point = DiagonalGaussian(part, block.base.precision)
            name = lineage_key(key, block.name)
            blocks.append(
                Block(
                    key=name,
                    name=block.name,
                    gaussian=point,
                    base=block.base,
                    prior=point,
                    buffers=part_buffers,
                )
            )
        return Posterior(tuple(blocks))

    def with_blocks(self, others: Mapping[str, Posterior]) -> Posterior:
        """The posterior with some of its blocks from others, by name of the block."""
        blocks = enumerate(self.blocks)
        return Posterior(tuple(others.get(b.name, self).blocks[index] for index, b in blocks))

    def buffers(self, model: Model) -> Tensor:
        """(buffers,) flat running statistics in the model's layout."""
        return model.join_buffers({b.name: b.buffers for b in self.blocks})


def _full(gaussian: DiagonalGaussian) -> Tensor:
    return torch.broadcast_to(gaussian.precision, gaussian.mean.shape)


def from_initial(
    model: Model, key: str, mean: Tensor, buffers: Tensor, precision: float
) -> Posterior:
    """The isotropic prior around an initial network.

    Args:
        model: the architecture.
        key: identifies the initial network.
        mean: (parameters,) initial parameters.
        buffers: (buffers,) initial running statistics.
        precision: prior precision of each parameter.
    """
    blocks = []
    for name, (part, part_buffers) in model.split(mean, buffers).items():
        prior = DiagonalGaussian.isotropic(part, precision)
        blocks.append(
            Block(
                key=lineage_key(key, name),
                name=name,
                gaussian=prior,
                base=prior,
                prior=prior,
                buffers=part_buffers,
            )
        )
    return Posterior(tuple(blocks))


def weighted_mean(posteriors: Sequence[Posterior], weights: Sequence[float]) -> Posterior:
    """Weighted mean of the parameters and running statistics of several models.

    A point estimate: its precision is that of the first model's base.

    Args:
        posteriors: at least one, of the same blocks.
        weights: one per posterior, at least 0, not all 0; normalised internally.
    """
    total = sum(weights)
    shares = [weight / total for weight in weights]
    blocks = []
    for parts in zip(*(posterior.blocks for posterior in posteriors), strict=True):
        if all(part is parts[0] for part in parts):
            blocks.append(parts[0])
            continue
        pairs = list(zip(shares, parts, strict=True))
        mean = torch.stack([share * part.gaussian.mean for share, part in pairs]).sum(dim=0)
        buffers = torch.stack([share * part.buffers for share, part in pairs]).sum(dim=0)
        precision = parts[0].base.precision
        point = DiagonalGaussian(mean, precision)
        key = lineage_key("mean", *((part.key, share) for share, part in pairs))
        blocks.append(
            Block(
                key=key,
                name=parts[0].name,
                gaussian=point,
                base=point,
                prior=point,
                buffers=buffers,
            )
        )
    return Posterior(tuple(blocks))
