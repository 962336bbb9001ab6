"""Where the model of a cluster comes from when a round begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior

NEW = -1


class Origin(Protocol):
    """Where a new cluster's model comes from."""

    def posterior(self, parent: Hypothesis) -> Posterior:
        """The model that the cluster continues from."""
        ...


@dataclass(frozen=True)
class Continue:
    """The cluster continues from a cluster of the parent hypothesis.

    Attributes:
        index: index of that cluster.
        is_copy: whether it is a further cluster that starts from that model, such as a part of a
            divided cluster, while another one is what becomes of the cluster itself.
    """

    index: int
    is_copy: bool = False

    def posterior(self, parent: Hypothesis) -> Posterior:
        """The parent's posterior of that cluster."""
        return parent.clusters[self.index]


@dataclass(frozen=True, eq=False)
class Given:
    """The cluster continues from a given model, such as a new or a merged one.

    Attributes:
        model: that model.
        index: index of the parent's cluster that it is after the round; None for a new cluster.
    """

    model: Posterior
    index: int | None = None

    def posterior(self, parent: Hypothesis) -> Posterior:
        """The model itself."""
        del parent
        return self.model


def continued(origins: Sequence[Origin], before: int) -> tuple[int, ...]:
    """Index of the cluster of the parent that each cluster continues, -1 for a new one.

    Args:
        origins: of the clusters.
        before: number of clusters of the parent.

    Returns:
        One index for each cluster; empty where all keep their numbers.
    """
    sources = tuple(map(_continued, origins))
    return () if sources == tuple(range(max(before, len(sources)))) else sources


def _continued(origin: Origin) -> int:
    if isinstance(origin, Continue) and not origin.is_copy:
        return origin.index
    if isinstance(origin, Given) and origin.index is not None:
        return origin.index
    return NEW
