"""What a federation has learned: hypotheses, associations, graphs, predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from bcfl import graphs
from bcfl.executors.flat_module import FlatModule
from bcfl.federation.evaluation import served_mixture
from bcfl.federation.state import FederationState, RoundRecord
from bcfl.history import smoothed_associations
from bcfl.hypothesis import HypothesisSet
from bcfl.model import Model
from posteriors import split_entropy


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a client's served mixture says of some inputs.

    Attributes:
        mean: (samples, classes) predicted probabilities.
        entropy: (samples,) of the prediction, nats.
        data_uncertainty: (samples,) mean entropy of the single models, nats.
        association_uncertainty: (samples,) mutual information between the label and which model
            serves the client, nats. Both parts sum to the entropy.
    """

    mean: NDArray[np.float64]
    entropy: NDArray[np.float64]
    data_uncertainty: NDArray[np.float64]
    association_uncertainty: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Prediction({len(self.mean)} samples, mean entropy {self.entropy.mean():.3f} nats)"


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of a federation.

    Attributes:
        model: the architecture.
        state: what the next round would go on from.
        records: what happened in each round that this call did.
        groups: true group of each client where known; for analysis only.
    """

    model: Model
    state: FederationState
    records: tuple[RoundRecord, ...]
    groups: Mapping[str, int | None]

    def __repr__(self) -> str:
        return f"Run({self.state.round} rounds, {self.hypotheses!r})"

    @property
    def hypotheses(self) -> HypothesisSet:
        """The association hypotheses after the last round."""
        return self.state.hypotheses

    @property
    def clients(self) -> tuple[str, ...]:
        """Client names, in the order of the rows of all matrices."""
        return self.hypotheses.best.association.clients

    def association_probabilities(self) -> NDArray[np.float64]:
        """(clients, clusters) probabilities over the kept hypotheses; rows sum to 1."""
        return self.hypotheses.association_probabilities()

    def association_entropy(self) -> NDArray[np.float64]:
        """(clients,) entropy of each client's association, nats; greatest if it was never seen."""
        p = self.association_probabilities()
        entropy: NDArray[np.float64] = entr(p).sum(axis=1)
        return np.where(p.any(axis=1), entropy, np.log(p.shape[1]))

    def smoothed(self, round: int) -> NDArray[np.float64]:
        """(clients, clusters) associations in a past round, seen from today.

        Weighs that round's hypotheses by `ancestor_shares`; clusters are named as in the
        hypothesis of the largest share.

        Args:
            round: the past round, from 1.

        Raises:
            ValueError: there is no such round.
        """
        return smoothed_associations(self.state.history, round)

    def association_graph(self, min_probability: float = 0.0) -> nx.Graph[str]:
        """Clients joined by their accumulated co-association; see `graphs.association_graph`."""
        return graphs.association_graph(self.state.history, self.groups, min_probability)

    def client_cluster_graph(self) -> nx.Graph[str]:
        """Clients joined to clusters; see `graphs.client_cluster_graph`."""
        return graphs.client_cluster_graph(self.hypotheses, self.groups)

    def hypothesis_tree(self) -> nx.DiGraph[str]:
        """Hypotheses of all rounds; see `graphs.hypothesis_tree`."""
        return graphs.hypothesis_tree(self.state.history)

    def predict(self, client: str, inputs: ArrayLike | torch.Tensor) -> Prediction:
        """Predict with the mixture of models that serves a client.

        Args:
            client: name of the client.
            inputs: (samples, *input_shape).

        Raises:
            ValueError: the client is unknown, the inputs do not fit, or the model is not a
                classifier.
        """
        if client not in self.clients:
            raise ValueError(f"client must be one of {self.clients[:3]}..., got {client!r}")
        if self.model.likelihood != "categorical":
            raise ValueError("predict needs a classifier, got a model with Gaussian likelihood")
        mixture = served_mixture(self.hypotheses, client)
        first = next(iter(mixture)).mean(self.model)
        x = torch.as_tensor(inputs).to(first)
        if not self.model.reads(tuple(x.shape[1:])):
            wanted = ", ".join(map(str, self.model.input_shape))
            raise ValueError(f"inputs must have shape (samples, {wanted}), got {tuple(x.shape)}")
        workspace = FlatModule(self.model, first.device, first.dtype)
        members = []
        for posterior in mixture:
            module = workspace.load(
                posterior.mean(self.model), posterior.buffers(self.model), training=False
            )
            with torch.no_grad():
                members.append(module(x).double().softmax(1).cpu())
        weights = torch.tensor(list(mixture.values()), dtype=torch.float64)
        stacked = torch.stack(members)
        split = split_entropy(stacked, weights)
        return Prediction(
            torch.tensordot(weights, stacked, dims=1).numpy(),
            split.total.numpy(),
            split.data.numpy(),
            split.mutual_information.numpy(),
        )
