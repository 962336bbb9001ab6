"""Regularisers of local training: smooth penalties with gradients in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.linalg import vector_norm
from torch.nn.functional import cosine_similarity, log_softmax

from bcfl.architecture.layout import ALL, Part
from bcfl.hypotheses.posterior import Posterior, weighted_mean
from bcfl.protocol.loss_terms import Sees, SelfContained, check_weight

SMALLEST_NORM = 1e-8
"""Norms below are taken for it, as by `cosine_similarity`."""


@dataclass(frozen=True)
class Proximal(SelfContained):
    """weight / 2 ||parameters - start||^2: FedProx (Li et al. 2020).

    Attributes:
        weight: rho; 0.95 in the thesis of WeCFL (section 3.5).
        part: parameters that are penalised; running statistics never are.
    """

    weight: float = 0.95
    part: Part = ALL
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Half the squared distance from the start; see `bcfl.protocol.Regularizer.penalty`."""
        del references
        return 0.5 * (live - start).square().sum()

    def gradient(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        """See `bcfl.protocol.loss_terms.ClosedForm.gradient`."""
        del references
        return live - start


@dataclass(frozen=True)
class Contrast:
    """-log softmax of the similarity to the own cluster's model: CFL-CON (Ma 2023, chapter 4).

    Own is the model that the client starts from; the others are those of the other clusters. With
    `sees="parameters"` the similarity is the cosine of parameters (CON-para, equation 4.3); with
    `"outputs"` it is the cosine of logits per sample, averaged over the batch (CON-rep, equation
    4.4). The objective adds the negative logarithm of the ratio printed there. Chapter 4 compares
    all parameters, chapter 6 the classifier's.

    Attributes:
        weight: mu.
        temperature: tau, which divides the cosines.
        sees: whether parameters or outputs are compared.
        part: parameters that are compared by `parameters`.
    """

    weight: float = 0.5
    temperature: float = 1.0
    sees: Sees = "parameters"
    part: Part = ALL

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)
        check_weight("temperature", self.temperature)
        if self.sees not in ("parameters", "outputs"):
            raise ValueError(f"sees must be 'parameters' or 'outputs', got {self.sees!r}")

    def references(
        self, clusters: Sequence[Posterior], shares: Sequence[float], start: str
    ) -> tuple[Posterior, ...]:
        """The models of the other clusters; see `bcfl.protocol.Regularizer.references`."""
        del shares
        others = {posterior.key: posterior for posterior in clusters if posterior.key != start}
        return tuple(others.values())

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Cross-entropy of choosing the own cluster by similarity, in [0, log K + 2 / tau].

        See `bcfl.protocol.Regularizer.penalty`.
        """
        rows = live if live.ndim > 1 else live[None]
        models = [other if other.ndim > 1 else other[None] for other in (start, *references)]
        cosines = torch.stack([cosine_similarity(rows, other, dim=1) for other in models], dim=1)
        return -log_softmax(cosines / self.temperature, dim=1)[:, 0].mean()

    def gradient(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        """Of the contrast of parameters; see `bcfl.protocol.loss_terms.ClosedForm.gradient`.

        With c the cosines and p their softmax, sum_k (p_k - [k is own]) / tau times the gradient
        of c_k, which is m_k / (|x| |m_k|) - c_k x / |x|^2 for model m_k and parameters x.
        """
        own = torch.linalg.vecdot(start, live)[..., None]
        others = torch.matmul(references, live[..., None])[..., 0]
        norms = [vector_norm(start, dim=-1, keepdim=True), vector_norm(references, dim=-1)]
        length = vector_norm(live, dim=-1, keepdim=True).clamp_min(SMALLEST_NORM)
        lengths = length * torch.cat(norms, dim=-1).clamp_min(SMALLEST_NORM)
        cosines = torch.cat([own, others], dim=-1) / lengths
        factors = torch.softmax(cosines / self.temperature, dim=-1)
        factors[..., 0] -= 1
        factors /= self.temperature
        towards = factors / lengths
        inwards = (factors * cosines).sum(-1, keepdim=True) / length.square()
        gradient = torch.matmul(towards[..., None, 1:], references)[..., 0, :]
        return gradient.addcmul_(towards[..., :1], start).addcmul_(inwards, live, value=-1)


@dataclass(frozen=True)
class Sharing:
    """weight / 2 ||parameters - mean model||^2: CFL-CKS (Ma 2023, chapter 5).

    The mean model is that of all clusters, weighted by their samples (equation 5.6). Pulling
    towards every other cluster (equation 5.5) has the same gradient: for cluster k,
    sum_i w_i ||t_k - t_i||^2 = ||t_k - mean||^2 + sum_i w_i ||t_i - mean||^2.

    Attributes:
        weight: lambda.
        part: parameters that are shared: all in chapter 5, all but the classifier in chapter 6.
    """

    weight: float = 0.1
    part: Part = ALL
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def references(
        self, clusters: Sequence[Posterior], shares: Sequence[float], start: str
    ) -> tuple[Posterior, ...]:
        """The mean model of all clusters; see `bcfl.protocol.Regularizer.references`."""
        del start
        return (weighted_mean(clusters, shares),) if len(clusters) > 1 else ()

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Half the squared distance from the mean model; 0 where there is one cluster.

        See `bcfl.protocol.Regularizer.penalty`.
        """
        del start
        if not references:
            return live.sum() * 0
        return 0.5 * (live - references[0]).square().sum()

    def gradient(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        """See `bcfl.protocol.loss_terms.ClosedForm.gradient`."""
        del start
        return live - references[..., 0, :] if references.shape[-2] else torch.zeros_like(live)


@dataclass(frozen=True)
class Attraction:
    """weight / 2 sum_k importance_k ||parameters - cluster_k||^2: FedSoft.

    Ruan and Joe-Wong, "FedSoft: Soft Clustered Federated Learning with Proximal Local Updating"
    (2022).

    Attributes:
        weight: lambda.
        importances: of each cluster for the client that trains, in the order of the clusters.
        part: parameters that are pulled; running statistics never are.
    """

    weight: float
    importances: tuple[float, ...]
    part: Part = ALL
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)
        if not self.importances or not all(
            np.isfinite(importance) and importance >= 0 for importance in self.importances
        ):
            raise ValueError(
                f"importances must be finite and at least 0, one per cluster, got "
                f"{self.importances}"
            )

    def references(
        self, clusters: Sequence[Posterior], shares: Sequence[float], start: str
    ) -> tuple[Posterior, ...]:
        """The models of all clusters; see `bcfl.protocol.Regularizer.references`."""
        del shares, start
        return tuple(clusters)

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Half the weighted sum of squared distances from the clusters' models.

        See `bcfl.protocol.Regularizer.penalty`.
        """
        del start
        pairs = zip(self.importances, references, strict=True)
        distances = [importance * (live - other).square().sum() for importance, other in pairs]
        return 0.5 * sum(distances[1:], start=distances[0])

    def gradient(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        """See `bcfl.protocol.loss_terms.ClosedForm.gradient`."""
        del start
        gradient = live * sum(self.importances)
        for importance, other in zip(self.importances, references.unbind(-2), strict=True):
            gradient.sub_(other, alpha=importance)
        return gradient


@dataclass(frozen=True)
class Consolidation(SelfContained):
    """weight / 2 sum fisher (parameters - anchor)^2.

    The references are the client's own: the anchor, and a model whose parameters are the diagonal
    of the Fisher information per sample. The request for the training names them.

    Attributes:
        weight: lambda; loss and Fisher information are both means over samples.
        part: parameters that are penalised.
    """

    weight: float = 10.0
    part: Part = ALL
    sees: ClassVar[Sees] = "parameters"

    def __post_init__(self) -> None:
        check_weight("weight", self.weight)

    def penalty(self, live: Tensor, start: Tensor, references: Sequence[Tensor]) -> Tensor:
        """Half the squared distance from the anchor, weighted by the Fisher information.

        See `bcfl.protocol.Regularizer.penalty`.
        """
        del start
        anchor, fisher = references
        return 0.5 * (fisher * (live - anchor).square()).sum()

    def gradient(self, live: Tensor, start: Tensor, references: Tensor) -> Tensor:
        """See `bcfl.protocol.loss_terms.ClosedForm.gradient`."""
        del start
        anchor, fisher = references.unbind(-2)
        return fisher * (live - anchor)
