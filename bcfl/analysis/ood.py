"""How strange samples are to the clusters that a client may be in, whatever their labels.

The entropy of a prediction does not tell samples that a network never saw: far from all it has
learned it can be sure. What does is the density of the samples' features under those of each
cluster. A sample is strange to a client if other clusters, or none, explain it better than the
client's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.data.clients import TRAIN, ClientData
from bcfl.data.streams import at_step, num_steps
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.scoring import CHUNK
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.posterior import Posterior, weighted_mean
from posteriors.predictive.feature_density import FeatureSums, GaussianDensity, ridged

MOST_FEATURES = 64
"""Features beyond so many are projected to so many, at random but always in the same way."""
BROADER = 4.0
"""How much wider than all samples together the density of what no cluster knows is, in variance."""


@dataclass(frozen=True, eq=False)
class FeatureDensity:
    """Densities of the features of each cluster's samples, and of anything.

    The features are those of one network for all clusters, the mean of their models: what goes into
    its last fully connected layer. A client sends their sum and their sum of squares and products,
    never a sample; a cluster's are the sums of its clients by their association probabilities.

    Attributes:
        features: from samples to features.
        clusters: density of each cluster of the leading hypothesis; None where it is empty.
        anything: a broad density around all samples.
    """

    features: Features
    clusters: tuple[GaussianDensity | None, ...]
    anything: GaussianDensity

    @classmethod
    def of(
        cls, model: Model, hypotheses: HypothesisSet, clients: Iterable[ClientData]
    ) -> FeatureDensity:
        """Put together what clients say of the samples that they hold at the last time step.

        Args:
            model: the architecture.
            hypotheses: with their models and associations.
            clients: clients of these hypotheses, with training samples.
        """
        features = Features.of(model, hypotheses.best.clusters)
        held = {data.client: data for data in clients}
        step = num_steps(held.values()) - 1
        sums = {
            name: FeatureSums.of(features(at_step(data, step).views[TRAIN].inputs))
            for name, data in held.items()
        }
        rows = hypotheses.association_probabilities()
        places = {name: i for i, name in enumerate(hypotheses.best.association.clients)}
        shares = {name: rows[places[name]] for name in sums}
        total = _total(list(sums.values()))
        square = total.mean_square
        spread = ridged(total.scatter / total.count, square)
        parts = [
            _total([one * float(shares[name][k]) for name, one in sums.items()])
            for k in range(rows.shape[1])
        ]
        scatter = sum((part.scatter for part in parts if part.count >= 1), 0 * spread)
        within = ridged(scatter / total.count, square)
        clusters = tuple(GaussianDensity.of(p, within) if p.count >= 1 else None for p in parts)
        anything = GaussianDensity(total.mean, torch.linalg.cholesky(BROADER * spread))
        return cls(features, clusters, anything)

    def ood_score(self, association: NDArray[np.float64], inputs: Tensor) -> NDArray[np.float64]:
        """How much better all clusters or none explain samples than a client's own, nats.

        log((mean over clusters of p(features | cluster) + p(features | anything)) / sum over
        clusters of p(cluster | client) p(features | cluster)): 0.7 where all are alike, higher the
        stranger; 0 where no cluster has samples.

        Args:
            association: (clusters,) probabilities of the client; zeros are taken as uniform.
            inputs: (samples, *input_shape).

        Returns:
            (samples,).
        """
        found = self.features(inputs)
        known = [k for k, density in enumerate(self.clusters) if density is not None]
        densities = [density for density in self.clusters if density is not None]
        if not densities:
            return np.zeros(len(found))
        each = torch.stack([density.log_density(found) for density in densities])
        weights = torch.as_tensor(association)[known].to(each)
        weights = weights if float(weights.sum()) > 0 else torch.ones_like(weights)
        own = (each + (weights / weights.sum()).log().unsqueeze(1)).logsumexp(0)
        other = torch.logaddexp(
            each.logsumexp(0) - log(len(densities)), self.anything.log_density(found)
        )
        return (other - own).cpu().numpy()


@dataclass(frozen=True, eq=False)
class Features:
    """What goes into the last fully connected layer of a network, in at most 64 numbers.

    Attributes:
        module: the network, in evaluation mode.
        like: a tensor of its dtype and on its device.
    """

    module: nn.Module
    like: Tensor

    @classmethod
    def of(cls, model: Model, clusters: tuple[Posterior, ...]) -> Features:
        """Of the mean of the clusters' models."""
        middle = weighted_mean(clusters, [1.0] * len(clusters))
        mean = middle.mean(model)
        workspace = FlatModule(model, mean.device, mean.dtype)
        return cls(workspace.load(mean, middle.buffers(model), training=False), mean)

    def __call__(self, inputs: Tensor) -> Tensor:
        """(samples, features), float64; the outputs where no layer is fully connected."""
        return torch.cat([self._of(part) for part in torch.split(inputs, CHUNK)])

    def _of(self, inputs: Tensor) -> Tensor:
        seen: list[Tensor] = []
        layers = [layer for layer in self.module.modules() if isinstance(layer, nn.Linear)]
        hooks = [
            layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
            for layer in layers
        ]
        try:
            with torch.no_grad():
                outputs = self.module(inputs.to(self.like))
        finally:
            for hook in hooks:
                hook.remove()
        found = (seen[-1] if seen else outputs).flatten(1).double()
        if found.shape[1] <= MOST_FEATURES:
            return found
        draw = torch.Generator().manual_seed(0)
        shape = (found.shape[1], MOST_FEATURES)
        projection = torch.randn(shape, generator=draw, dtype=torch.float64) / shape[0] ** 0.5
        projected: Tensor = found @ projection.to(found)
        return projected


def _total(parts: list[FeatureSums]) -> FeatureSums:
    total = parts[0]
    for one in parts[1:]:
        total = total + one
    return total
