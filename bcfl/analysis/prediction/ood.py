"""Out-of-distribution scores of samples for the clusters that a client may be in.

The entropy of a prediction does not detect such samples: far from its training samples a network
can be confident. The density of their features under those of each cluster does. A sample is out of
a client's distribution if other clusters, or none, explain it better than the client's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bcfl.architecture.model import Model
from bcfl.data.names import TRAIN
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.posterior import Posterior, weighted_mean
from bcfl.protocol.requests import Exchange, Score, Steps
from bcfl.protocol.statistics.features import Features, features
from posteriors.predictive.feature_density import FeatureSums, GaussianDensity, ridged

BROADER = 4.0
"""How much wider than all samples together the background density is, in variance."""
OUTLYING = 30.0
"""Clients whose mean square feature exceeds the median client's so many times are left out."""


@dataclass(frozen=True, eq=False)
class FeatureDensity:
    """Densities of the features of each cluster's samples, and a background density.

    The features are those of one network for all clusters, the mean of their models: the inputs of
    its last fully connected layer. Clients report the statistic `Features`, sums and no samples;
    a cluster's sums are those of its clients, weighted by their association probabilities. A client
    whose features are of another scale, because its inputs are, would widen all densities until
    they say nothing; it is left out.

    Attributes:
        network: computes the features, in evaluation mode.
        like: a tensor of its dtype and on its device.
        clusters: density of each cluster of the leading hypothesis; None where it is empty.
        background: a broad density around all samples.
    """

    network: nn.Module
    like: Tensor
    clusters: tuple[GaussianDensity | None, ...]
    background: GaussianDensity

    @classmethod
    def from_clients(
        cls, model: Model, hypotheses: HypothesisSet, clients: Sequence[str]
    ) -> Steps[FeatureDensity | None]:
        """Ask clients for the sums over their training samples; None where none answers.

        Args:
            model: the architecture.
            hypotheses: with their models and associations.
            clients: of these hypotheses, sorted by name.
        """
        mean = _mean_of(hypotheses)
        scores = [
            Score(client=client, models=(mean.key,), statistic=Features(), view=TRAIN)
            for client in clients
        ]
        replies = yield Exchange.of(scores, (mean,))
        sums = {score.client: replies[score][mean.key] for score in scores if score in replies}
        return cls.of(model, hypotheses, sums) if sums else None

    @classmethod
    def of(
        cls, model: Model, hypotheses: HypothesisSet, sums: Mapping[str, FeatureSums]
    ) -> FeatureDensity:
        """Fit the densities to sums that clients report.

        Args:
            model: the architecture.
            hypotheses: with their models and associations.
            sums: by client of these hypotheses; at least one.
        """
        posterior = _mean_of(hypotheses)
        mean = posterior.mean(model)
        placed = {
            client: FeatureSums(part.count, part.first.to(mean.device), part.second.to(mean.device))
            for client, part in _of_one_scale(sums).items()
        }
        rows = hypotheses.association_probabilities()
        places = {name: i for i, name in enumerate(hypotheses.best.association.clients)}
        total = _total(list(placed.values()))
        square = total.mean_square
        spread = ridged(total.scatter / total.count, square)
        parts = [
            _total([part * float(rows[places[name], k]) for name, part in placed.items()])
            for k in range(rows.shape[1])
        ]
        scatter = sum((part.scatter for part in parts if part.count >= 1), 0 * spread)
        within = ridged(scatter / total.count, square)
        clusters = tuple(GaussianDensity.of(p, within) if p.count >= 1 else None for p in parts)
        background = GaussianDensity(total.mean, torch.linalg.cholesky(BROADER * spread))
        return cls(model.network(mean, posterior.buffers(model)), mean, clusters, background)

    def ood_score(self, association: NDArray[np.float64], inputs: Tensor) -> NDArray[np.float64]:
        """How much better all clusters or none explain samples than a client's own, nats.

        log((mean over clusters of p(features | cluster) + p(features | background)) / sum over
        clusters of p(cluster | client) p(features | cluster)): 0.7 where all are equal, higher for
        samples out of distribution; 0 where no cluster has samples.

        Args:
            association: (clusters,) probabilities of the client; zeros are taken as uniform.
            inputs: (samples, *input_shape).

        Returns:
            (samples,).
        """
        values = features(self.network, inputs.to(self.like))
        known = [k for k, density in enumerate(self.clusters) if density is not None]
        densities = [density for density in self.clusters if density is not None]
        if not densities:
            return np.zeros(len(values))
        each = torch.stack([density.log_density(values) for density in densities])
        weights = torch.as_tensor(association)[known].to(each)
        weights = weights if float(weights.sum()) > 0 else torch.ones_like(weights)
        own = (each + (weights / weights.sum()).log().unsqueeze(1)).logsumexp(0)
        other = torch.logaddexp(
            each.logsumexp(0) - log(len(densities)), self.background.log_density(values)
        )
        return (other - own).cpu().numpy()


def _of_one_scale(sums: Mapping[str, FeatureSums]) -> Mapping[str, FeatureSums]:
    """The sums without those of clients whose features are far larger than the median client's."""
    squares = sorted(part.mean_square for part in sums.values())
    largest = OUTLYING * squares[(len(squares) - 1) // 2]
    if len(squares) < 3 or largest == 0:
        return sums
    return {client: part for client, part in sums.items() if part.mean_square <= largest}


def _mean_of(hypotheses: HypothesisSet) -> Posterior:
    """The mean of the clusters' models."""
    clusters = hypotheses.best.clusters
    return weighted_mean(clusters, [1.0] * len(clusters))


def _total(parts: list[FeatureSums]) -> FeatureSums:
    return sum(parts[1:], start=parts[0])
