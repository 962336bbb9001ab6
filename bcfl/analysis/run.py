"""The outcome of a federation: hypotheses, associations, graphs, predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import networkx as nx
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from bcfl.analysis import export, graphs, metrics
from bcfl.analysis.graphs import remembers_support, support_graph
from bcfl.analysis.ood import FeatureDensity
from bcfl.analysis.predictions import Prediction, fitting, labelled, predict
from bcfl.analysis.tuning import GRID, tuned
from bcfl.architecture.evaluation import network_outputs
from bcfl.architecture.model import Model
from bcfl.data.clients import VALIDATION
from bcfl.executors import Executor
from bcfl.executors.arithmetic import computing
from bcfl.hypotheses.history import Snapshot, ancestor_shares, smoothed_associations
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.prediction_rule import PredictionRule, PredictiveName
from bcfl.protocol.requests import Steps
from bcfl.protocol.statistics.sample_values import sample_losses
from bcfl.rounds.exchange import RoundExchange
from bcfl.rounds.state import FederationState, RoundRecord
from posteriors.predictive import TuningGrid
from posteriors.torch_state import standard_switches

if TYPE_CHECKING:
    import xarray

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """The outcome of a federation.

    Attributes:
        model: the architecture.
        state: state after the last round, from which the run can be continued.
        records: outcome of each round of this call.
        groups: true group of each client where known; for analysis only.
        executor: reaches the clients, whose sums tune predictions and give out-of-distribution
            scores; None leaves these out. A run holds no client's samples itself.
    """

    model: Model
    state: FederationState
    records: tuple[RoundRecord, ...]
    groups: Mapping[str, int | None]
    executor: Executor | None = None

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
        """(clients, clusters) posterior membership over the kept hypotheses.

        Rows sum to 1; the row of a client never seen, of which nothing is known, is zero. How clients are trained is another matter: see `hypotheses.best.association`.
        """
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
        otherwise it is the share that survived. Clusters are named as in the hypothesis of the
        largest share.

        Args:
            round: the past round, from 1.

        Raises:
            ValueError: there is no such round.
        """
        return smoothed_associations(self._history, round)

    def co_association(self) -> NDArray[np.float64]:
        """(clients, clients) probability that two share a cluster, mixed over hypotheses."""
        return self.hypotheses.co_association()

    def association_graph(self, min_probability: float = 0.0) -> nx.Graph[str]:
        """Clients joined by their co-association; see `graphs.association_graph`."""
        return graphs.association_graph(self.hypotheses, self.groups, min_probability)

    def accumulated_association_graph(self, min_probability: float = 0.0) -> nx.Graph[str]:
        """Clients joined by rounds together; see `graphs.accumulated_association_graph`."""
        history = self.state.history
        return graphs.accumulated_association_graph(history, self.groups, min_probability)

    def client_cluster_graph(self) -> nx.Graph[str]:
        """Clients joined to clusters; see `graphs.client_cluster_graph`."""
        return graphs.client_cluster_graph(self.hypotheses, self.groups)

    def hypothesis_tree(self) -> nx.DiGraph[str]:
        """Hypotheses of all rounds; see `graphs.hypothesis_tree`."""
        return graphs.hypothesis_tree(self.state.history)

    def support_graph(self) -> nx.DiGraph[str]:
        """Support between clusters of the leading hypothesis; see `support_graph`."""
        return support_graph(self.hypotheses.best, self.groups)

    @property
    def tests_support(self) -> bool:
        """Whether the method tests which cluster supports which, as FAACL does."""
        return remembers_support(self.hypotheses.best)

    def metrics(self, true_groups: Mapping[str, int | None] | None = None) -> dict[str, float]:
        """Scores after the last round, see `bcfl.analysis.metrics`; NaN where one is not known.

        Of the clients' test predictions: accuracy, macro_f1, nll (nats per sample), ece and brier.
        Of the leading association: ari, ami, homogeneity and completeness.

        Args:
            true_groups: true group of each client, None where unknown; by default `groups`.
        """
        evaluations = self.records[-1].evaluations if self.records else {}
        groups = self.groups if true_groups is None else true_groups
        leading = self.hypotheses.best.association
        return {**metrics.summarise(evaluations), **metrics.agreement(leading, groups)}

    @cached_property
    def rule(self) -> PredictionRule:
        """The default prediction rule of this run.

        Where clients set training samples aside (`calibration` of a method), it is `plug-in` with
        the temperature chosen by sums over those, else plain `plug-in`. Tuned on the same
        sums, the predictives that average over the posterior choose a prior so narrow that they
        predict the same at many times the cost (`experiments.studies.calibration`).
        """
        info = self.state.client_info
        holding = [
            client
            for client in self.clients
            if client not in info or info[client].num_samples.get(VALIDATION, 0) > 0
        ]
        if self.executor is None or not holding:
            return PredictionRule()
        plain = PredictionRule()
        return self.ask(tuned(plain, self.hypotheses, holding, VALIDATION)) or plain

    @standard_switches()
    def predict(
        self,
        client: str,
        inputs: ArrayLike | torch.Tensor,
        predictive: PredictiveName | PredictionRule | None = None,
        *,
        by: Literal["belief", "association"] = "belief",
        step: int | None = None,
    ) -> Prediction:
        """Predict with the mixture of cluster models under a client's posterior membership.

        Args:
            client: name of the client.
            inputs: (samples, *input_shape).
            predictive: how a cluster's posterior becomes a prediction, by name or as a rule with
                all its numbers, such as `tuned` gives; by default `rule`.
            by: whether the client is in clusters with the probabilities that are believed (see
                `Hypothesis.membership`), or with those of the association by which it trains, as in
                the evaluations of the rounds.
            step: time step of the inputs, from 0, if it is known: `apd` and `fedweit` predict with
                what the client keeps of that step, all others with the models that serve now.

        Raises:
            ValueError: the client or `by` is unknown, the inputs do not fit, `step` is below 0, the
                model is not a classifier, or the predictive needs a curvature that the method has
                not got.
        """
        self._check(client)
        if step is not None and step < 0:
            raise ValueError(f"step must be at least 0, got {step}")
        rule = self._rule(predictive)
        if by not in ("belief", "association"):
            raise ValueError(f"by must be 'belief' or 'association', got {by!r}")
        memberships = Membership.of_client if by == "belief" else Membership.by_association
        membership = memberships(self.hypotheses, client)
        mixture = None if step is None else membership.mixture_at(self.model, client, step)
        return self._predicted(membership, inputs, rule, mixture)

    @standard_switches()
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
                `"mean"` divides the loss by the number of samples. No model was trained on the
                samples, and with 1 the pairs (`Prediction.co_association`) were calibrated best.

        Raises:
            ValueError: inputs, classes or temperature are not valid, the model is not a
                classifier, or the predictive needs a curvature that the method has not got.
        """
        rule = self._rule(predictive)
        x, y = adaptation
        view = labelled(self.model, x, y, self._mean)
        models = {p.key: p for h in self.hypotheses for p in h.clusters}
        losses = {}
        for key, posterior in models.items():
            network = self.model.network(posterior.mean(self.model), posterior.buffers(self.model))
            with computing("full", view.inputs.device):
                outputs = network_outputs(network, view.inputs)
            losses[key] = float(sample_losses(self.model.likelihood, outputs, view.targets).sum())
        membership = Membership.of_newcomer(self.hypotheses, losses, len(view), temperature)
        predicted = self._predicted(membership, inputs, rule)
        return replace(predicted, co_association=membership.co_association)

    def tuned(
        self,
        predictive: PredictiveName | PredictionRule = "linearised",
        *,
        clients: Sequence[str] | None = None,
        view: str = VALIDATION,
        grid: TuningGrid = GRID,
    ) -> PredictionRule:
        """Choose prior precision and temperature by the log loss of held-out samples.

        Each client reports sums over the grid; the sums of all clients decide.

        Args:
            predictive: as in `predict`; a `plug-in` gets a temperature only.
            clients: names of the clients that report sums; None is all.
            view: name of the held-out samples; they must not have been trained on.
            grid: values to try.

        Raises:
            ValueError: a client is unknown, no client has such samples, the run has no executor, or
                the predictive needs a curvature that the method has not got.
        """
        rule = self._rule(predictive)
        names = self.clients if clients is None else sorted(clients)
        for client in names:
            self._check(client)
        best = self.ask(tuned(rule, self.hypotheses, names, view, grid))
        if best is None:
            raise ValueError(f"clients must have samples in the view {view!r}, none has")
        return best

    @standard_switches()
    def ask(self, steps: Steps[Result]) -> Result:
        """Let the clients answer a generator of requests, on the data of the last round.

        Evaluations are such generators: `bcfl.rounds.evaluation.evaluate_finetuned`, for example.

        Args:
            steps: yields exchanges, receives replies, and returns the result.

        Raises:
            ValueError: the run has no executor.
        """
        if self.executor is None:
            raise ValueError("executor must reach the clients to ask them, got None")
        round = max(self.state.round - 1, 0)
        return RoundExchange(self.executor, self.model, round).drive(steps)

    def to_xarray(self, *, co_association: bool = True) -> xarray.Dataset:
        """Weights, associations and co-associations of all rounds; see `export.to_xarray`."""
        return export.to_xarray(self._history, self.groups, co_association=co_association)

    def to_netcdf(self, path: str | Path, *, co_association: bool = True) -> None:
        """Write `to_xarray` to a NetCDF file, which xarray, ArviZ, R and Julia read.

        Args:
            path: file to write.
            co_association: whether to include the co-association probabilities, clients x clients
                per round.
        """
        self.to_xarray(co_association=co_association).to_netcdf(path, engine="scipy")

    def to_pyro(self) -> Any:  # noqa: ANN401 - pyro has no types
        """A `pyro.distributions` mixture over the cluster models; see `HypothesisSet.to_pyro`."""
        return self.hypotheses.to_pyro(self.model)

    def _check(self, client: str) -> None:
        if client not in self.clients:
            raise ValueError(f"client must be one of {self.clients[:3]}..., got {client!r}")

    def _rule(self, predictive: PredictiveName | PredictionRule | None) -> PredictionRule:
        if self.model.likelihood != "categorical":
            raise ValueError("predict needs a classifier, got a model with Gaussian likelihood")
        if predictive is None:
            return self.rule
        return (
            predictive
            if isinstance(predictive, PredictionRule)
            else PredictionRule(predictive=predictive)
        )

    def _predicted(
        self,
        membership: Membership,
        inputs: ArrayLike | torch.Tensor,
        rule: PredictionRule,
        mixture: Mapping[Posterior, float] | None = None,
    ) -> Prediction:
        x = fitting(self.model, inputs, self._mean)
        models = membership.mixture if mixture is None else mixture
        with computing("full", x.device):
            predicted = predict(self.model, models, membership.association, x, rule)
            density = self.feature_density
            if density is None:
                return predicted
            return replace(predicted, ood_score=density.ood_score(membership.association, x))

    @cached_property
    def feature_density(self) -> FeatureDensity | None:
        """The clusters' samples, for `Prediction.ood_score`; None where no client answers."""
        if self.executor is None:
            return None
        return self.ask(FeatureDensity.from_clients(self.model, self.hypotheses, self.clients))

    @property
    def _history(self) -> tuple[Snapshot, ...]:
        """Snapshots of all rounds, the last with what is believed now."""
        history = self.state.history
        return (*history[:-1], Snapshot.of(self.hypotheses)) if history else ()

    @property
    def _mean(self) -> torch.Tensor:
        return self.hypotheses.best.clusters[0].mean(self.model)
