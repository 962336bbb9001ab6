"""What a federation has learned: hypotheses, associations, graphs, predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import networkx as nx
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from bcfl.analysis import export, graphs
from bcfl.analysis.graphs import remembers_support, support_graph
from bcfl.analysis.ood import FeatureDensity
from bcfl.analysis.predictions import (
    Prediction,
    PredictionRule,
    PredictiveName,
    fitting,
    labelled,
    predict,
)
from bcfl.analysis.tuning import GRID, tuned
from bcfl.architecture.model import Model
from bcfl.data.clients import VALIDATION, ClientData, View
from bcfl.executors.arithmetic import computing
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.scoring import sample_losses
from bcfl.hypotheses.history import ancestor_shares, smoothed_associations
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.rounds.evaluation import served_mixture
from bcfl.rounds.state import FederationState, RoundRecord
from posteriors.predictive import TuningGrid

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of a federation.

    Attributes:
        model: the architecture.
        state: what the next round would go on from.
        records: what happened in each round that this call did.
        groups: true group of each client where known; for analysis only.
        data: the clients' samples, sums over which tune predictions and tell strange inputs.
    """

    model: Model
    state: FederationState
    records: tuple[RoundRecord, ...]
    groups: Mapping[str, int | None]
    data: tuple[ClientData, ...] = ()

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

    def ancestor_shares(self, round: int) -> NDArray[np.float64]:
        """Today's weight by ancestor in a past round; see `history.ancestor_shares`."""
        return ancestor_shares(self.state.history, round)

    def smoothed(self, round: int) -> NDArray[np.float64]:
        """(clients, clusters) associations in a past round, seen from today.

        Weighs that round's hypotheses by `ancestor_shares`. Where weights accumulate over rounds
        (memory `accumulate`) that is the posterior over the past associations given all rounds;
        otherwise it tells what has survived. Clusters are named as in the hypothesis of the
        largest share.

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

    def support_graph(self) -> nx.DiGraph[str]:
        """Clusters of the leading hypothesis and who supports whom; see `support_graph`."""
        return support_graph(self.hypotheses.best, self.groups)

    @property
    def tests_support(self) -> bool:
        """Whether the method tests which cluster supports which, as FAACL does."""
        return remembers_support(self.hypotheses.best)

    @cached_property
    def rule(self) -> PredictionRule:
        """How this run predicts unless told otherwise.

        Where clients set training samples aside (`calibration` of a method), it is `plug-in` with
        the temperature that sums over those choose, else `plug-in` as it is. Tuned on the same
        sums, the predictives that average over the posterior choose a prior so narrow that they
        predict the same at many times the cost (`experiments.studies.calibration`).
        """
        if not any(len(data.views.get(VALIDATION, ())) for data in self.data):
            return PredictionRule()
        return self.tuned(self.data, "plug-in")

    def predict(
        self,
        client: str,
        inputs: ArrayLike | torch.Tensor,
        predictive: PredictiveName | PredictionRule | None = None,
    ) -> Prediction:
        """Predict with the mixture of models that serves a client.

        Args:
            client: name of the client.
            inputs: (samples, *input_shape).
            predictive: how a cluster's posterior becomes a prediction, by name or as a rule with
                all its numbers, such as `tuned` gives; by default `rule`.

        Raises:
            ValueError: the client is unknown, the inputs do not fit, the model is not a
                classifier, or the predictive needs a curvature that the method has not got.
        """
        if client not in self.clients:
            raise ValueError(f"client must be one of {self.clients[:3]}..., got {client!r}")
        rule = self._rule(predictive)
        membership = Membership.of_client(self.hypotheses, client)
        return self._predicted(membership, inputs, rule)

    def predict_new(
        self,
        inputs: ArrayLike | torch.Tensor,
        adaptation: tuple[ArrayLike | torch.Tensor, ArrayLike | torch.Tensor],
        predictive: PredictiveName | PredictionRule | None = None,
        *,
        temperature: float | Literal["mean"] = 1.0,
    ) -> Prediction:
        """Associate a client that was never seen by a few of its samples, then predict.

        Over all pairs of hypothesis and cluster, p is proportional to the hypothesis' weight,
        divided equally among its clusters, times exp(-summed loss of the samples / temperature).

        Args:
            inputs: (samples, *input_shape) to predict.
            adaptation: the client's own inputs (few, *input_shape) and classes (few,).
            predictive: as in `predict`.
            temperature: of the association, not of the predicted probabilities: 1 is Bayes' rule,
                `"mean"` divides the loss by the number of samples.

        Raises:
            ValueError: inputs, classes or temperature are not valid, the model is not a
                classifier, or the predictive needs a curvature that the method has not got.
        """
        rule = self._rule(predictive)
        x, y = adaptation
        view = labelled(self.model, x, y, self._mean)
        models = {p.key: p for h in self.hypotheses for p in h.clusters}
        workspace = FlatModule(self.model, view.inputs.device, view.inputs.dtype)
        losses = {}
        for key, one in models.items():
            mean, buffers = one.mean(self.model), one.buffers(self.model)
            module = workspace.load(mean, buffers, training=False)
            with computing("full", view.inputs.device):
                losses[key] = float(sample_losses(module, self.model.likelihood, view).sum())
        membership = Membership.of_newcomer(self.hypotheses, losses, len(view), temperature)
        return self._predicted(membership, inputs, rule)

    def tuned(
        self,
        clients: Iterable[ClientData],
        predictive: PredictiveName | PredictionRule = "linearised",
        *,
        view: str = VALIDATION,
        grid: TuningGrid = GRID,
    ) -> PredictionRule:
        """Choose prior precision and temperature by the log loss of held-out samples.

        Each client turns its samples into sums over the grid; the sums of all clients decide.

        Args:
            clients: clients of this run with held-out samples.
            predictive: as in `predict`; a `plug-in` gets a temperature only.
            view: name of the held-out samples; they must not have been trained on.
            grid: values to try.

        Raises:
            ValueError: a client is unknown, or no client has such samples.
        """
        rule = self._rule(predictive)
        held_out = []
        for data in clients:
            if data.client not in self.clients:
                raise ValueError(f"clients must be of this run, got {data.client!r}")
            if len(samples := data.views.get(view, ())):
                mixture = served_mixture(self.hypotheses, data.client)
                held_out.append((mixture, cast("View", samples)))
        if not held_out:
            raise ValueError(f"clients must have samples in the view {view!r}, none has")
        with computing("full", self._mean.device):
            return tuned(rule, self.model, held_out, grid)

    def to_xarray(self, *, co_association: bool = True) -> xarray.Dataset:
        """Weights, associations and co-associations of all rounds; see `export.to_xarray`."""
        return export.to_xarray(self.state.history, self.groups, co_association=co_association)

    def to_netcdf(self, path: str | Path, *, co_association: bool = True) -> None:
        """Write `to_xarray` to a NetCDF file, which xarray, ArviZ, R and Julia read."""
        self.to_xarray(co_association=co_association).to_netcdf(path, engine="scipy")

    def to_pyro(self) -> Any:  # noqa: ANN401 - pyro has no types
        """A `pyro.distributions` mixture over the cluster models; see `HypothesisSet.to_pyro`."""
        return self.hypotheses.to_pyro(self.model)

    def _rule(self, predictive: PredictiveName | PredictionRule | None) -> PredictionRule:
        if self.model.likelihood != "categorical":
            raise ValueError("predict needs a classifier, got a model with Gaussian likelihood")
        if predictive is None:
            return self.rule
        return predictive if isinstance(predictive, PredictionRule) else PredictionRule(predictive)

    def _predicted(
        self, membership: Membership, inputs: ArrayLike | torch.Tensor, rule: PredictionRule
    ) -> Prediction:
        x = fitting(self.model, inputs, self._mean)
        with computing("full", x.device):
            found = predict(self.model, membership.mixture, membership.association, x, rule)
            known = self.familiarity
            if known is None:
                return found
            return replace(found, ood_score=known.ood_score(membership.association, x))

    @cached_property
    def familiarity(self) -> FeatureDensity | None:
        """What the clusters' samples look like, for `Prediction.ood_score`; None without data."""
        if not self.data:
            return None
        with computing("full", self._mean.device):
            return FeatureDensity.of(self.model, self.hypotheses, self.data)

    @property
    def _mean(self) -> torch.Tensor:
        return self.hypotheses.best.clusters[0].mean(self.model)
