"""Posterior membership of one client, and the mixture of models that serves it (BCFL, Eq. 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bcfl.architecture.model import Model
from bcfl.hypotheses.hypothesis import HypothesisSet, match_clusters
from bcfl.hypotheses.posterior import Posterior
from posteriors import log_association_weight
from posteriors.evidence.closed_form import Temperature

NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Membership:
    """Joint probabilities of hypotheses and clusters for one client.

    Attributes:
        hypotheses: the hypotheses.
        shares: for each hypothesis, (clusters,) joint probabilities; all of them sum to 1.
    """

    hypotheses: HypothesisSet
    shares: tuple[NDArray[np.float64], ...]

    @classmethod
    def of_client(cls, hypotheses: HypothesisSet, client: str) -> Membership:
        """Posterior membership of a client of the federation: hypothesis weight times belief.

        Over the hypotheses that have seen the client, as in `association_probabilities`.

        Args:
            hypotheses: hypotheses with their weights.
            client: name of the client; one never seen is in all clusters alike.
        """
        row = hypotheses.best.association.row(client)
        weights = hypotheses.weights
        seen = np.array([hypothesis.membership[row].any() for hypothesis in hypotheses])
        if not weights[seen].any():
            return cls.by_association(hypotheses, client)
        if not seen.all():
            weights = weights * seen / (weights * seen).sum()
        pairs = zip(weights, hypotheses, strict=True)
        return cls(hypotheses, tuple(weight * h.membership[row] for weight, h in pairs))

    @classmethod
    def by_association(cls, hypotheses: HypothesisSet, client: str) -> Membership:
        """Membership of a client by which it trains: hypothesis weight times serving probability.

        Args:
            hypotheses: hypotheses with their weights.
            client: name of the client; one never seen is in all clusters alike.
        """
        pairs = zip(hypotheses.weights, hypotheses, strict=True)
        return cls(hypotheses, tuple(weight * h.served_by(client) for weight, h in pairs))

    @classmethod
    def of_newcomer(
        cls,
        hypotheses: HypothesisSet,
        losses: Mapping[str, float],
        num_samples: int,
        temperature: Temperature,
    ) -> Membership:
        """Membership of a client that is in no hypothesis, by Bayes' rule.

        The prior is the hypothesis' weight, divided equally among its clusters; the likelihood is
        that of the client's samples at the mean of the cluster's model.

        Args:
            hypotheses: hypotheses with their weights.
            losses: summed negative log-likelihood of the samples by key of the model, nats.
            num_samples: number of samples that the losses are summed over.
            temperature: divides the losses; `"mean"` divides them by the number of samples.

        Raises:
            ValueError: the temperature is not positive, or a loss is NaN.
        """
        rows = []
        for log_weight, hypothesis in zip(hypotheses.log_weights, hypotheses, strict=True):
            summed = np.array([losses[posterior.key] for posterior in hypothesis.clusters])
            log_prior = log_weight - np.log(len(summed))
            rows.append(log_prior + log_association_weight(summed, num_samples, temperature))
        highest = max(float(row.max()) for row in rows)
        weights = [np.exp(row - highest) for row in rows]
        total = sum(float(row.sum()) for row in weights)
        return cls(hypotheses, tuple(row / total for row in weights))

    @property
    def association(self) -> NDArray[np.float64]:
        """Cluster probabilities over all hypotheses, (clusters,), indexed as in the leading one."""
        most = max(len(row) for row in self.shares)
        total = np.zeros(most)
        for hypothesis, row in zip(self.hypotheses, self.shares, strict=True):
            total[match_clusters(self.hypotheses.best, hypothesis)] += row
        return total

    @property
    def co_association(self) -> NDArray[np.float64]:
        """(clients,) probability of sharing a cluster with each client of the federation.

        Over the hypotheses that have seen that client.
        """
        pairs = zip(self.hypotheses, self.shares, strict=True)
        together: NDArray[np.float64] = sum(
            (h.membership @ row for h, row in pairs),
            start=np.zeros(len(self.hypotheses.best.association.clients)),
        )
        seen = np.array([h.membership.any(axis=1) for h in self.hypotheses])
        mass = np.array([row.sum() for row in self.shares]) @ seen
        partly = (mass > 0) & ~seen.all(axis=0)
        together[partly] /= mass[partly]
        return together

    @property
    def mixture(self) -> dict[Posterior, float]:
        """The models that serve the client and their probabilities.

        p(model) sums over the hypotheses and clusters that use it (BCFL, equation 10, for one
        client). Joint probabilities up to 1e-9 are left out.
        """
        return _mixed(
            pair
            for hypothesis, row in zip(self.hypotheses, self.shares, strict=True)
            for pair in zip(hypothesis.clusters, row, strict=True)
        )

    def mixture_at(self, model: Model, client: str, step: int) -> dict[Posterior, float]:
        """The models by which the client predicts samples of an earlier time step.

        Args:
            model: the architecture.
            client: name of the client.
            step: the time step, from 0; see `bcfl.Hypothesis.at_step`.
        """
        pairs: list[tuple[Posterior, float]] = []
        for hypothesis, row in zip(self.hypotheses, self.shares, strict=True):
            own = hypothesis.at_step(model, client, step)
            pairs += (
                zip(hypothesis.clusters, row, strict=True) if own is None else [(own, sum(row))]
            )
        return _mixed(pairs)


def _mixed(pairs: Iterable[tuple[Posterior, float]]) -> dict[Posterior, float]:
    """Probabilities of distinct models, from joint ones that may name a model several times."""
    by_key: dict[str, tuple[Posterior, float]] = {}
    for posterior, share in pairs:
        if share > NEGLIGIBLE:
            _, so_far = by_key.get(posterior.key, (posterior, 0.0))
            by_key[posterior.key] = (posterior, so_far + float(share))
    total = sum(share for _, share in by_key.values())
    return {posterior: share / total for posterior, share in by_key.values()}
