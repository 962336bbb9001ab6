"""Association hypotheses and their weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import assignment
from bcfl.architecture.model import Model
from bcfl.hypotheses.association import UNSEEN, Association, given_both_seen, given_seen
from bcfl.hypotheses.matching import best_matching
from bcfl.hypotheses.posterior import Posterior
from bcfl.runtime.suggestions import counted
from posteriors import DiagonalGaussian, mixture_to_pyro

Cavities = Mapping[tuple[str, int], Posterior]
"""By client and index of a cluster, the cluster's model without the client's contribution."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Hypothesis:
    """One association history, with the posteriors over cluster models that it implies.

    Attributes:
        clusters: the posterior of each cluster's model.
        association: serving cluster of each client.
        log_weight: log probability of the hypothesis, nats.
        parents: indices of its parents among those that competed before (hypotheses, then
            proposals).
        shares: share of its weight from each parent, summing to 1; empty for equal shares.
        kind: kind of a proposal, such as `split`; empty for a ranked association.
        lineage: for each round, the index of the ancestor that competed in it; the first is the
            initial hypothesis.
        continues: for each cluster, the index of the cluster that it continues of the parent with
            the largest share, -1 for a new one; empty where all keep their indices.
        state: opaque state that a policy or tracker carries from round to round.
        carried_models: models that a policy carries from round to round, by name.
        cavities: models of clusters without one of their contributors each, for policies that score
            clients by them; others leave it empty.
        scored_by_cavities: whether the policy scores the next round by the cavities; otherwise they
            are there for the round's recorded belief alone, and dropped after it.
        belief: (clients, clusters) probability of each client's cluster given the hypothesis, where
            clients were scored for it, by cavities; None where only the association is known by
            which clients train. A client never seen has a zero row.
        belief_recorded: whether the belief was recorded after the round, so that later rounds must
            not depend on it, and not stated by the policy.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> best = run.hypotheses.best
        >>> best
        Hypothesis(weight 1, cluster sizes 2 2)
        >>> best.association.by_client
        {'ann': 1, 'bob': 1, 'cem': 0, 'dan': 0}
        >>> best.parents, len(best.clusters)
        ((0,), 2)
    """

    clusters: tuple[Posterior, ...]
    association: Association
    log_weight: float = 0.0
    parents: tuple[int, ...] = ()
    kind: str = ""
    lineage: tuple[int, ...] = ()
    continues: tuple[int, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    shares: tuple[float, ...] = ()
    carried_models: Mapping[str, Posterior] = field(default_factory=dict)
    cavities: Cavities = field(default_factory=dict)
    scored_by_cavities: bool = False
    belief: NDArray[np.float64] | None = None
    belief_recorded: bool = False

    def __repr__(self) -> str:
        sizes = " ".join(map(str, self.association.sizes))
        return f"Hypothesis(weight {np.exp(self.log_weight):.3g}, cluster sizes {sizes})"

    @property
    def membership(self) -> NDArray[np.float64]:
        """(clients, clusters) the belief, or the association where there is none."""
        return self.association.serving if self.belief is None else self.belief

    @property
    def parent_shares(self) -> tuple[float, ...]:
        """Share of the weight from each parent, summing to 1."""
        count = len(self.parents)
        return self.shares or (1.0 / max(count, 1),) * count

    def relabelled(self, permutation: NDArray[np.int64]) -> Hypothesis:
        """The same hypothesis with cluster i at index permutation[i].

        Args:
            permutation: of the clusters, int64 of shape (clusters,).
        """
        old = np.argsort(permutation)
        same = not self.continues and bool((old == np.arange(len(old))).all())
        continues = self.continues or range(len(self.clusters))
        return replace(
            self,
            continues=() if same else tuple(continues[i] for i in old),
            clusters=tuple(self.clusters[i] for i in old),
            cavities={(c, int(permutation[i])): p for (c, i), p in self.cavities.items()},
            belief=None if self.belief is None else self.belief[:, old],
            association=self.association.relabelled(permutation),
        )

    def co_association(self) -> NDArray[np.float64]:
        """(clients, clients) probability that two clients share a cluster, given the hypothesis.

        The sum of p_ik p_jk over clusters k, where p_ik is the probability that client i is in
        cluster k: given a hypothesis, clients are in clusters independently. Of associations that
        were merged into one, the weighted mean of their sums. The diagonal is no probability.

        Returns:
            (clients, clients) float64, symmetric.
        """
        if self.belief is not None:
            return self.belief @ self.belief.T
        together: NDArray[np.float64] = sum(
            (w * one.serving @ one.serving.T for w, one in self.association.components),
            start=np.zeros((len(self.association.clients),) * 2),
        )
        return together

    def served_by(self, client: str) -> NDArray[np.float64]:
        """Probability of each cluster to serve a client, (clusters,); uniform if never seen.

        Returns:
            (clusters,) float64, summing to 1.
        """
        row = self.association.row(client)
        if self.association.labels[row] == UNSEEN:
            return np.full(len(self.clusters), 1.0 / len(self.clusters))
        if self.association.probabilities is not None:
            soft: NDArray[np.float64] = self.association.probabilities[row]
            return soft
        serving = np.zeros(len(self.clusters))
        serving[self.association.labels[row]] = 1.0
        return serving

    def at_step(self, model: Model, client: str, step: int) -> Posterior | None:
        """The model by which a client predicts samples of an earlier time step.

        What the client kept of that step, with the shared parameters of today; None where a method
        keeps nothing for each time step, and it predicts all with the model that serves it.

        Args:
            model: the architecture.
            client: name of the client.
            step: the time step, from 0.

        Returns:
            The posterior; None where nothing was kept, or the client was never seen.
        """
        kept = self.carried_models.get(model_of_step(client, step))
        if kept is None or self.association.label(client) == UNSEEN:
            return None
        shared = [b.name for b in model.blocks if b.scope == "global" and not b.frozen]
        today = self.clusters[self.association.label(client)]
        return kept.with_blocks(dict.fromkeys(shared, today))


def model_of_step(client: str, step: int) -> str:
    """Name among the carried models of what a client keeps of a time step.

    Args:
        client: name of the client.
        step: the time step, from 0.
    """
    return f"model of {client} at time step {step}"


@dataclass(frozen=True, eq=False)
class HypothesisSet:
    """The hypotheses kept after a round, most probable first, their weights summing to 1.

    Attributes:
        hypotheses: at least one hypothesis.
        round: rounds done so far.
        log_captured_mass: log of the share of this round's total weight that was kept, given the
            surviving parents, nats; NaN where unknown.
        proposals: alternatives that no client has scored yet: without weight and not served, they
            compete with the hypotheses in the next round. The `log_weight` of each is that of the
            hypothesis that it was made from.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> hypotheses = run.hypotheses
        >>> len(hypotheses), hypotheses.weights
        (1, array([1.]))
        >>> hypotheses.best.association.by_client
        {'ann': 1, 'bob': 1, 'cem': 0, 'dan': 0}
    """

    hypotheses: tuple[Hypothesis, ...]
    round: int = 0
    log_captured_mass: float = 0.0
    proposals: tuple[Hypothesis, ...] = ()

    def __repr__(self) -> str:
        known = not math.isnan(self.log_captured_mass)
        mass = f"log captured mass {self.log_captured_mass:.3g}, " if known else ""
        return (
            f"HypothesisSet({counted(len(self), 'hypothesis', 'hypotheses')}, "
            f"effective {self.effective_number:.1f}, "
            f"distinct partitions {self.num_partitions}, {mass}round {self.round})"
        )

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __iter__(self) -> Iterator[Hypothesis]:
        return iter(self.hypotheses)

    def __getitem__(self, index: int) -> Hypothesis:
        return self.hypotheses[index]

    @classmethod
    def weighted(
        cls, hypotheses: Sequence[Hypothesis], round: int, log_captured_mass: float
    ) -> HypothesisSet:
        """Normalise the weights and sort by them, most probable hypothesis first.

        Args:
            hypotheses: with unnormalised log weights, nats.
            round: number of rounds done.
            log_captured_mass: log of the share of all weight that they hold, nats.

        Returns:
            The set, with weights that sum to 1.

        Raises:
            ValueError: there is no hypothesis, or a weight is NaN or +inf, or all are zero.
        """
        if not hypotheses:
            raise ValueError("hypotheses must hold at least one, got none")
        log_weights = assignment.normalise(np.array([h.log_weight for h in hypotheses]))
        order = np.argsort(-log_weights, kind="stable")
        ranked = tuple(replace(hypotheses[i], log_weight=float(log_weights[i])) for i in order)
        return cls(ranked, round, log_captured_mass)

    @property
    def competing(self) -> tuple[Hypothesis, ...]:
        """Competitors of the next round, first the hypotheses and then the proposals."""
        return self.hypotheses + self.proposals

    @property
    def best(self) -> Hypothesis:
        """The most probable hypothesis."""
        return self.hypotheses[0]

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """(hypotheses,) log probabilities, nats."""
        return np.array([h.log_weight for h in self.hypotheses])

    @property
    def weights(self) -> NDArray[np.float64]:
        """(hypotheses,) probabilities."""
        return np.exp(self.log_weights)

    @property
    def effective_number(self) -> float:
        """Effective number of hypotheses, one over the sum of squared weights (Kish, 1965)."""
        return float(assignment.effective_number(self.log_weights))

    @property
    def num_partitions(self) -> int:
        """Number of distinct partitions of the clients by their most probable clusters.

        Hypotheses of one partition differ in their models alone.
        """
        return len({h.association.partition for h in self.hypotheses})

    def association_probabilities(self) -> NDArray[np.float64]:
        """(clients, clusters) probability of each client's cluster, over the kept hypotheses.

        Mixes what each hypothesis believes (see `bcfl.Hypothesis.membership`).

        Cluster labels are not identified across hypotheses, so the clusters of each are matched to
        those of the most probable one before summing; unmatched clusters follow. The row of a
        client never seen is zero; one that has answered for some hypotheses alone is mixed over
        these.

        Returns:
            (clients, clusters) float64. Rows sum to 1, or to 0 for a client that was never seen.
        """
        most = max(h.association.num_clusters for h in self.hypotheses)
        total = np.zeros((len(self.best.association.clients), most))
        for weight, hypothesis in zip(self.weights, self.hypotheses, strict=True):
            matched = match_clusters(self.best, hypothesis)
            total[:, matched] += weight * hypothesis.membership
        return given_seen(total, [h.membership for h in self.hypotheses])

    def co_association(self) -> NDArray[np.float64]:
        """(clients, clients) probability that two clients share a cluster.

        The mean of `bcfl.Hypothesis.co_association` over hypotheses by their weights: the sum over
        hypotheses h of w_h times the sum over clusters k of p_ik p_jk. Pairs are averaged one by
        one, so that clusters need no matching, over the hypotheses that have seen both clients. The
        diagonal is 1; a client never seen shares a cluster with no other.

        Returns:
            (clients, clients) float64, symmetric.
        """
        pairs = zip(self.weights, self.hypotheses, strict=True)
        together: NDArray[np.float64] = sum(
            (weight * hypothesis.co_association() for weight, hypothesis in pairs),
            start=np.zeros((len(self.best.association.clients),) * 2),
        )
        together = given_both_seen(together, self.weights, [h.membership for h in self.hypotheses])
        np.fill_diagonal(together, 1.0)
        return together

    def to_pyro(self, model: Model | None = None, *, num_clusters: int | None = None) -> Any:  # noqa: ANN401
        """A `pyro.distributions` mixture over the cluster models, one component per hypothesis.

        It can be sampled, scored and used as the prior of a Pyro program. Events are (clusters,
        parameters): the models of all clusters, which are matched to those of the most probable
        hypothesis.

        Args:
            model: the architecture, in whose order the parameters then are; required if it is
                divided into blocks.
            num_clusters: keep only the hypotheses with this number of clusters, weights normalised;
                by default all hypotheses must agree.

        Returns:
            A `pyro.distributions.MixtureSameFamily` with events (clusters, parameters).

        Raises:
            ValueError: hypotheses have different numbers of clusters, none has `num_clusters`, the
                model is required, or a precision is zero.
        """
        counts = sorted({len(h.clusters) for h in self})
        if num_clusters is None and len(counts) > 1:
            raise ValueError(f"num_clusters must choose one of {counts}: hypotheses differ in it")
        count = counts[0] if num_clusters is None else num_clusters
        components = [h for h in self if len(h.clusters) == count]
        if not components:
            raise ValueError(f"num_clusters must be one of {counts}, got {num_clusters}")
        models = []
        for hypothesis in components:
            order = np.argsort(match_clusters(components[0], hypothesis))
            gaussians = [hypothesis.clusters[i].gaussian(model) for i in order]
            mean = torch.stack([g.mean for g in gaussians])
            precision = torch.stack([g.precision.expand(g.mean.shape) for g in gaussians])
            models.append(DiagonalGaussian(mean, precision))
        return mixture_to_pyro(models, [h.log_weight for h in components])


def match_clusters(reference: Hypothesis, other: Hypothesis) -> NDArray[np.int64]:
    """Match the clusters of two hypotheses one to one.

    Maximises the number of shared clients; a shared posterior counts half a client. Unmatched
    clusters are numbered after those of `reference`.

    Args:
        reference: hypothesis that gives the indices.
        other: hypothesis whose clusters are matched.

    Returns:
        For each cluster of `other`, its index in `reference`, int64 of shape (clusters,).
    """
    overlap = other.association.serving.T @ reference.association.serving
    keys = [posterior.key for posterior in reference.clusters]
    for row, posterior in enumerate(other.clusters):
        overlap[row] += [0.5 * (key == posterior.key) for key in keys]
    return best_matching(overlap)
