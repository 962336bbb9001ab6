"""The outcome of a federation: hypotheses, associations, graphs, predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from bcfl.analysis import export, graphs, metrics, plots, saving
from bcfl.analysis.graphs import remembers_support, support_graph
from bcfl.analysis.notebook import in_html
from bcfl.analysis.prediction import classes as of_classes
from bcfl.analysis.prediction import numbers, serving, tuning
from bcfl.analysis.prediction.ood import FeatureDensity
from bcfl.analysis.rows import Row, privacy_columns, round_row, to_dataframe
from bcfl.analysis.true_groups import groups_after
from bcfl.architecture.model import Model
from bcfl.executors import Executor, Privacy
from bcfl.hypotheses.history import Snapshot, ancestor_shares, smoothed_associations
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.protocol.requests import Steps
from bcfl.protocol.statistics.predictions import Pooling
from bcfl.rounds.evaluation import evaluate
from bcfl.rounds.exchange import RoundExchange
from bcfl.rounds.state import FederationState, RoundRecord
from bcfl.runtime.folders import as_path
from bcfl.runtime.spans import Span
from bcfl.runtime.suggestions import counted
from posteriors.torch_state import standard_switches

if TYPE_CHECKING:
    import networkx as nx
    import pandas
    import xarray

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """The outcome of a federation: hypotheses, rounds, scores, predictions and figures.

    `bcfl.Federation.run` returns it. Its methods, by what they are for:

    - Who is with whom: `association_probabilities`, `association_entropy`, `co_association`;
      `association_dataframe` and `co_association_dataframe` have the names of the clients;
      `hypotheses` has the weighted hypotheses, `smoothed` and `ancestor_shares` look back.
    - Predicting: `predict` for a client of the federation, `predict_new` for one that was never
      seen; of numbers `predict_values` and `predict_new_values`; `network` for the plain network
      of a client. `tuned` makes a prediction rule.
    - Scores: `metrics` after the last round, `to_dataframe` and `rows` for all rounds.
    - Graphs and figures: `association_graph`, `client_cluster_graph`, `hypothesis_tree`, and
      `plot_...`.
    - Saving and exporting: `save`, `to_xarray`, `to_netcdf`, `to_arviz`, `to_pyro`.

    Arrays with an entry for each client follow `clients`, whose names are in alphabetical order
    (`client-10` before `client-2`), whatever the order in which the federation was given them.

    Attributes:
        model: the architecture.
        state: state after the last round, from which the run can be continued.
        records: outcome of each round of this call.
        groups: true group of each client where known, in a stream at the time step of the last
            round (`groups_after` gives those of other rounds); for analysis only. Functions that
            take nothing but dictionaries, such as `json.dumps`, take `dict(run.groups)`.
        executor: reaches the clients, whose sums tune predictions and give out-of-distribution
            scores; None leaves these out. A run holds no client's samples itself.
        logged: rows of earlier rounds without records, those of a run that was read from a folder;
            see `bcfl.Run.rows`.
        pooling: how predictions of the models that serve a client are combined in tests.
        columns: names of the columns of the clients' inputs, where these have names; data frames
            given to `predict` and its siblings are read by them.
        target_columns: names of the columns of the clients' targets, where these have names.
        classes: labels of the classes, in the order of the predicted probabilities, where clients
            were made with `classes`; `predict_new` then takes such labels.
        input_span: the lowest and the highest training input of all clients, by which predictions
            warn of inputs of another scale; None where it is not known.
        settings: of method, network and federation as plain values, for files and reports.
        privacy: how clients randomise what they send; None where they do not.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> run.clients
        ('ann', 'bob', 'cem', 'dan')
        >>> run.association_probabilities().argmax(axis=1)
        array([1, 1, 0, 0])
        >>> run.predict("ann", [[1.0, 0.0]]).mean.argmax(axis=1)
        array([1])
    """

    model: Model
    state: FederationState
    records: tuple[RoundRecord, ...]
    groups: Mapping[str, int | None]
    executor: Executor | None = None
    logged: tuple[Row, ...] = ()
    pooling: Pooling = "probabilities"
    columns: tuple[Any, ...] = ()
    target_columns: tuple[Any, ...] = ()
    classes: tuple[Any, ...] = ()
    input_span: Span | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    privacy: Privacy | None = None

    def __repr__(self) -> str:
        count = sum(len(record.ledger.failures) for record in self.records)
        count += sum(len(row["failures"]) for row in self.logged)
        failed = f"{counted(count, 'failed request')}, " if count else ""
        return f"Run({counted(self.state.round, 'round')}, {failed}{self.hypotheses!r})"

    def _repr_html_(self) -> str:
        return in_html(self)

    @property
    def hypotheses(self) -> HypothesisSet:
        """The association hypotheses after the last round."""
        return self.state.hypotheses

    @property
    def clients(self) -> tuple[str, ...]:
        """Client names in alphabetical order, which is the order of the rows of all matrices."""
        return self.hypotheses.best.association.clients

    def groups_after(self, round: int) -> Mapping[str, int | None]:
        """True group of each client after a round, None where unknown.

        Groups change over rounds in a stream alone, see `bcfl.analysis.TrueGroups`.

        Args:
            round: the round, from 1.

        Returns:
            Mapping from clients to the numbers of their groups; empty without any.
        """
        return groups_after(self.groups, round) or {}

    def association_probabilities(self) -> NDArray[np.float64]:
        """(clients, clusters) probability of each client in each cluster, over all hypotheses.

        It says what is believed. How clients are trained is another matter: see
        `hypotheses.best.association`. Where no beliefs were recorded (`belief_every=0` of
        `bcfl.Federation.run`), it is this association, over all hypotheses.

        Returns:
            (clients, clusters) float64. Rows are in the order of `clients` and sum to 1; the row of
            a client that was never seen is zero. Clusters are numbered as in the leading
            hypothesis.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> run.association_probabilities().round(2)
            array([[0., 1.],
                   [0., 1.],
                   [1., 0.],
                   [1., 0.]])
        """
        return self.hypotheses.association_probabilities()

    @property
    def history(self) -> tuple[Snapshot, ...]:
        """Hypotheses of each round with their weights and parents, without models, oldest first.

        The last has the beliefs of now, which a run that was stopped early updates after its last
        round. Empty before the first round.
        """
        history = self.state.history
        return (*history[:-1], Snapshot.of(self.hypotheses)) if history else ()

    def association_entropy(self) -> NDArray[np.float64]:
        """(clients,) entropy of each client's association, in nats.

        Returns:
            (clients,) float64 in the order of `clients`, from 0, where the cluster is certain, to
            the logarithm of the number of clusters, also for a client that was never seen.
        """
        p = self.association_probabilities()
        entropy: NDArray[np.float64] = scipy.special.entr(p).sum(axis=1)
        return np.where(p.any(axis=1), entropy, np.log(p.shape[1]))

    def ancestor_shares(self, round: int) -> NDArray[np.float64]:
        """Share of today's weight that descends from each hypothesis of a past round.

        See `bcfl.hypotheses.ancestor_shares`.

        Args:
            round: the past round, from 1.

        Returns:
            (hypotheses and proposals of that round,) float64, summing to 1.

        Raises:
            ValueError: there is no such round.
        """
        return ancestor_shares(self.state.history, round)

    def smoothed(self, round: int) -> NDArray[np.float64]:
        """(clients, clusters) association probabilities of a past round, weighted by what survived.

        Weighs that round's hypotheses by `ancestor_shares`. Where weights accumulate over rounds
        (memory `accumulate`) that is the posterior over the past associations given all rounds;
        otherwise it is the share that survived. Clusters are named as in the hypothesis of the
        largest share.

        Args:
            round: the past round, from 1.

        Returns:
            (clients, clusters) float64, rows in the order of `clients`.

        Raises:
            ValueError: there is no such round.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> run.smoothed(1).round(2)
            array([[0., 1.],
                   [0., 1.],
                   [1., 0.],
                   [1., 0.]])
        """
        return smoothed_associations(self.history, round)

    def co_association(self) -> NDArray[np.float64]:
        """(clients, clients) probability that two share a cluster; the diagonal is 1.

        Returns:
            (clients, clients) float64, symmetric, rows and columns in the order of `clients`.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> run.co_association()[0].round(2)
            array([1., 1., 0., 0.])
        """
        return self.hypotheses.co_association()

    def association_graph(self, min_probability: float = 0.0) -> nx.Graph[str]:
        """Clients, joined by the probability of sharing a cluster.

        Args:
            min_probability: leave out edges below this, in [0, 1].

        Returns:
            A networkx graph. Edges have `probability`, nodes `cluster` and, where known, `group`;
            see `bcfl.analysis.association_graph`.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> graph = run.association_graph(min_probability=0.5)
            >>> sorted(graph.edges)
            [('ann', 'bob'), ('cem', 'dan')]
        """
        return graphs.association_graph(self.hypotheses, self.groups, min_probability)

    def accumulated_association_graph(self, min_probability: float = 0.0) -> nx.Graph[str]:
        """Clients, joined by the share of rounds that they were associated together.

        Args:
            min_probability: leave out edges below this, in [0, 1].

        Returns:
            A networkx graph; see `bcfl.analysis.accumulated_association_graph`.
        """
        history = self.state.history
        return graphs.accumulated_association_graph(history, self.groups, min_probability)

    def client_cluster_graph(self) -> nx.Graph[str]:
        """Clients and clusters, joined by membership.

        Returns:
            A bipartite networkx graph. Edges have `probability`; see
            `bcfl.analysis.client_cluster_graph`.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> graph = run.client_cluster_graph()
            >>> round(graph.edges["ann", "cluster-1"]["probability"], 2)
            1.0
        """
        return graphs.client_cluster_graph(self.hypotheses, self.groups)

    def hypothesis_tree(self) -> nx.DiGraph[str]:
        """Hypotheses of all rounds, with edges from their parents.

        Returns:
            A directed networkx graph. Nodes are named `r3h0` (round 3, most probable hypothesis)
            and have `weight`; see `bcfl.analysis.hypothesis_tree`.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> tree = run.hypothesis_tree()
            >>> sorted(tree.edges)
            [('r0h0', 'r1h0'), ('r1h0', 'r2h0'), ('r2h0', 'r3h0')]
            >>> tree.nodes["r3h0"]["sizes"]
            '2 2'
        """
        return graphs.hypothesis_tree(self.state.history)

    def support_graph(self) -> nx.DiGraph[str]:
        """Clusters of the leading hypothesis, and which supports which.

        Returns:
            A directed networkx graph; see `bcfl.analysis.support_graph`.
        """
        return support_graph(self.hypotheses.best, self.groups)

    @property
    def tests_support(self) -> bool:
        """Whether the method tests which cluster supports which, as FAACL does."""
        return remembers_support(self.hypotheses.best)

    def metrics(self, true_groups: Mapping[str, int | None] | None = None) -> dict[str, float]:
        """Scores after the last round.

        All scores are there, whether or not clients have test samples.

        Of the clients' test predictions, by the likelihood of the model:

        - categorical: accuracy, macro_f1, nll (nats per sample), ece and brier;
        - Gaussian: rmse, nll, the coverage of central intervals and its error, see
          `bcfl.analysis.metrics.summarise_regression`;
        - Bernoulli: accuracy of all labels of a sample together, micro_f1, macro_f1, nll, ece and
          brier, see `bcfl.analysis.metrics.summarise_labels`.

        Of the leading association: ari, ami, homogeneity and completeness. Scores of predictions
        need clients with a `test` view, scores of the association their true groups.

        Args:
            true_groups: true group of each client, None where unknown; by default `groups`, those
                after the last round.

        Returns:
            Numbers by the names above; NaN where a score is not known.

        Raises:
            ValueError: a true group is of a client that is not in the run.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> scores = run.metrics()
            >>> scores["ari"]
            1.0
            >>> scores["accuracy"] > 0.9
            True
        """
        if true_groups is not None and not isinstance(true_groups, Mapping):
            raise TypeError(f"true_groups must be a mapping of clients, got {true_groups!r}")
        likelihood, leading = self.model.likelihood, self.hypotheses.best.association
        groups = self.groups if true_groups is None else true_groups
        if self.logged and not self.records:
            known = {name: self.logged[-1].get(name) for name in metrics.SCORES[likelihood]}
            scores = {name: nan if value is None else value for name, value in known.items()}
        else:
            scores = metrics.SUMMARIES[likelihood](self.tested if self.records else {})
        return {**scores, **metrics.agreement(leading, groups)}

    @cached_property
    def tested(self) -> Mapping[str, Any]:
        """Sums over each client's predictions of its test samples after the last round, by client.

        Those of the last record; without records clients are asked, if `executor` reaches them.
        """
        if self.records:
            return self.records[-1].predicted
        if self.executor is None:
            return {}
        return self.ask(evaluate(self.hypotheses, self.clients, self.model, self.pooling))

    @standard_switches()
    def ask(self, steps: Steps[Result]) -> Result:
        """Send the requests of a generator to the clients, and return its result.

        Evaluations are such generators: `bcfl.rounds.evaluation.evaluate_finetuned`, for example.

        Args:
            steps: yields exchanges, receives replies, and returns the result.

        Returns:
            What the generator returns.

        Raises:
            ValueError: the run has no executor.
        """
        if self.executor is None:
            raise ValueError("executor must reach the clients to ask them, got None")
        round = max(self.state.round - 1, 0)
        return RoundExchange(self.executor, self.model, round).drive(steps)

    rule = cached_property(tuning.default_rule)
    predict = of_classes.predict
    predict_values = numbers.predict_values
    predict_new_values = numbers.predict_new_values
    predict_new = of_classes.predict_new
    network = serving.network
    tuned = tuning.tuned

    @property
    def rounds(self) -> list[int]:
        """Numbers of the rounds that are logged or have a record, those of `rows`."""
        return [row["round"] for row in self.logged] + [record.round for record in self.records]

    def rows(self) -> list[Row]:
        """What happened in each round that is logged or has a record.

        The time of a round of this process is that of its parts.

        Returns:
            A dictionary for each round: scores, costs and facts by name; see
            `bcfl.analysis.rows.round_row`. With differential privacy also `releases`, how often the
            client that released most has released something so far, and its `epsilon`, which is
            None where dp-accounting is not installed.
        """
        recorded = (
            round_row(record, self.groups, sum(record.ledger.seconds.values()))
            | privacy_columns(released, self.privacy)
            for record, released in zip(self.records, self._released, strict=True)
        )
        return [*self.logged, *recorded]

    @property
    def _released(self) -> list[Counter[str]]:
        """How often each client has released something up to each round with a record."""
        left, found = Counter(self.state.releases), []
        for record in reversed(self.records):
            found.append(Counter(left))
            left.subtract(record.ledger.releases)
        return found[::-1]

    def to_dataframe(self) -> pandas.DataFrame:
        """Scores and costs of all rounds as a data frame.

        Returns:
            A pandas data frame with a line for each round, the earliest first, and a column for
            each number, such as `round`, `accuracy` or `trainings_run`; see
            `bcfl.analysis.rows.to_dataframe`.

        Raises:
            ModuleNotFoundError: pandas is not installed.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> run.to_dataframe()[["round", "trainings_run", "ari"]]
               round  trainings_run  ari
            0      1              4  1.0
            1      2              4  1.0
            2      3              4  1.0
        """
        return to_dataframe(self.rows())

    def to_xarray(self, *, co_association: bool = True) -> xarray.Dataset:
        """Weights, associations and co-associations of all rounds as a data set of xarray.

        Args:
            co_association: whether to include the co-association probabilities, clients x clients
                per round.

        Returns:
            An xarray data set with the axes `round`, `hypothesis`, `client`, `other_client` and
            `cluster`; see `bcfl.analysis.export.to_xarray`.

        Raises:
            ValueError: no round was done.
            ModuleNotFoundError: xarray is not installed.

        Example:
            With `run` of the example of `bcfl.Federation`:

            >>> data = run.to_xarray()
            >>> data["co_association"].sel(round=3, client="ann").values.round(2)
            array([1., 1., 0., 0.])
        """
        return export.to_xarray(self.history, self.groups, co_association=co_association)

    def to_netcdf(self, path: str | Path, *, co_association: bool = True) -> None:
        """Write `to_xarray` to a NetCDF 3 file, which xarray, R and Julia read.

        Args:
            path: file to write.
            co_association: whether to include the co-association probabilities, clients x clients
                per round.
        """
        place = as_path("path", path)
        self.to_xarray(co_association=co_association).to_netcdf(place, engine="scipy")

    def to_arviz(self, draws: int = 1000, seed: int = 0) -> xarray.DataTree:
        """Draws from the posterior over associations for ArviZ.

        Args:
            draws: number of draws, at least 1.
            seed: of the draws.

        Returns:
            An xarray data tree with the group `posterior`; see `bcfl.analysis.export.to_arviz`.
        """
        return export.to_arviz(self.hypotheses, draws, seed)

    def to_pyro(self) -> Any:  # noqa: ANN401 - pyro has no types
        """The mixture over the cluster models as a distribution of Pyro.

        Returns:
            A distribution of `pyro.distributions`; see `bcfl.HypothesisSet.to_pyro`.

        Example:
            With `run` of the example of `bcfl.Federation`, whose two clusters have six parameters:

            >>> run.to_pyro().sample().shape
            torch.Size([2, 6])
        """
        return self.hypotheses.to_pyro(self.model)

    association_dataframe = export.association_dataframe
    co_association_dataframe = export.co_association_dataframe
    save = saving.save
    plot_association_graph = plots.as_method(plots.plot_association_graph)
    plot_association_reliability = plots.as_method(plots.plot_association_reliability)
    plot_cluster_sizes = plots.as_method(plots.plot_cluster_sizes)
    plot_hypothesis_weights = plots.as_method(plots.plot_hypothesis_weights)
    plot_reliability = plots.as_method(plots.plot_reliability)
    plot_uncertain_clients = plots.as_method(plots.plot_uncertain_clients)

    @cached_property
    def feature_density(self) -> FeatureDensity | None:
        """The clusters' samples, for `bcfl.Prediction.ood_score`; None where no client answers."""
        if self.executor is None:
            return None
        return self.ask(FeatureDensity.from_clients(self.model, self.hypotheses, self.clients))
