"""The posterior over associations with names: data frames of pandas, a data set of xarray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bcfl.analysis.metrics import check_groups
from bcfl.analysis.true_groups import TrueGroups
from bcfl.hypotheses.association import UNSEEN, given_both_seen, given_seen
from bcfl.hypotheses.history import Snapshot
from bcfl.hypotheses.hypothesis import HypothesisSet, match_clusters
from bcfl.hypotheses.numbering import cluster_numbers, renumbered
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import generator

if TYPE_CHECKING:
    import pandas
    import xarray

    from bcfl.analysis.run import Run

DESCRIPTIONS: Mapping[str, tuple[str, str]] = {
    "hypothesis_weight": ("1", "probability of a hypothesis; NaN where a round kept fewer"),
    "label": ("1", "cluster of a client in a hypothesis; -1 if never seen, or no such hypothesis"),
    "association": ("1", "posterior probability over the hypotheses that a client is in a cluster"),
    "co_association": ("1", "posterior probability that two clients share a cluster"),
    "is_belief": ("1", "whether the hypotheses of a round hold beliefs, or associations alone"),
    "log_captured_mass": ("nat", "log of the share of the round's weight that was kept"),
}


def association_dataframe(self: Run) -> pandas.DataFrame:
    """Probability of each client, by name, in each cluster, as a data frame.

    `run.association_dataframe().loc["anna"]` is the row of one client.

    Returns:
        The values of `association_probabilities`, with index `client` and columns `cluster`.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    pd, probabilities = required_pandas(), self.association_probabilities()
    names = pd.Index(self.clients, name="client")
    clusters = pd.RangeIndex(probabilities.shape[1], name="cluster")
    frame: pandas.DataFrame = pd.DataFrame(probabilities, names, clusters)
    return frame


def co_association_dataframe(self: Run) -> pandas.DataFrame:
    """Probability that two clients, by name, share a cluster, as a data frame.

    `run.co_association_dataframe().loc["anna", "ben"]` is the probability of one pair.

    Returns:
        The values of `co_association`, with index `client` and columns `other_client`.

    Raises:
        ModuleNotFoundError: pandas is not installed.
    """
    pd = required_pandas()
    names, others = (pd.Index(self.clients, name=axis) for axis in ("client", "other_client"))
    frame: pandas.DataFrame = pd.DataFrame(self.co_association(), names, others)
    return frame


def required_pandas() -> Any:  # noqa: ANN401 - a module
    """The module `pandas`.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "data frames need pandas: pip install 'bcfl[export]'", name="pandas"
        ) from error
    return pandas


def to_xarray(
    history: Sequence[Snapshot],
    groups: Mapping[str, int | None] | None = None,
    *,
    co_association: bool = True,
) -> xarray.Dataset:
    """Weights, associations and co-associations of all rounds, with named axes.

    Axes are `round` (from 1), `hypothesis` (most probable first), `client`, `other_client` and
    `cluster`. Clusters are numbered as in the leading hypothesis after the last round, and keep
    their numbers in all rounds and hypotheses where their models go on, whichever clients they
    have, see `bcfl.hypotheses.cluster_numbers`. Probabilities are beliefs in rounds with
    `is_belief`, and those of the hypotheses' associations (`label`) in others. Where true groups
    are known they are the coordinate `group` of `client`, or of `round` and `client` where they
    change over rounds; -1 where they are not known.

    Args:
        history: snapshots of the rounds.
        groups: true group of each client.
        co_association: whether the (round, client, other_client) probabilities are there too.

    Returns:
        A data set with the variables `hypothesis_weight`, `label`, `association`, `is_belief`,
        `log_captured_mass` (nats) and, unless left out, `co_association`.

    Raises:
        ValueError: no round was done, or a group is of an unknown client.
        ModuleNotFoundError: xarray is not installed.
    """
    if not history:
        raise ValueError("history must hold at least one round, got none")
    data_set = _xarray().Dataset
    clients = list(history[0].associations[0].clients)
    check_groups(groups, clients)
    labels, association = _associations(history)
    variables: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {
        "hypothesis_weight": (("round", "hypothesis"), _weights(history)),
        "label": (("round", "hypothesis", "client"), labels),
        "association": (("round", "client", "cluster"), association),
        "is_belief": (
            ("round",),
            np.array([any(b is not None for b in snapshot.beliefs) for snapshot in history]),
        ),
        "log_captured_mass": (("round",), np.array([s.log_captured_mass for s in history])),
    }
    if co_association:
        shared = np.stack([_shared(s) for s in history])
        variables["co_association"] = (("round", "client", "other_client"), shared)
    described = {
        name: (*entry, {"units": DESCRIPTIONS[name][0], "long_name": DESCRIPTIONS[name][1]})
        for name, entry in variables.items()
    }
    coordinates: dict[str, Any] = {
        "round": np.array([s.round for s in history], dtype=np.int32),
        "hypothesis": np.arange(labels.shape[1], dtype=np.int32),
        "client": clients,
        "cluster": np.arange(association.shape[2], dtype=np.int32),
    }
    if co_association:
        coordinates["other_client"] = clients
    if groups and any(group is not None for group in groups.values()):
        if isinstance(groups, TrueGroups) and groups.change:
            by_round = [_numbered(groups.after(snapshot.round), clients) for snapshot in history]
            coordinates["group"] = (("round", "client"), np.array(by_round, dtype=np.int32))
        else:
            coordinates["group"] = ("client", _numbered(groups, clients))
    title = {"title": "posterior over associations"}
    dataset: xarray.Dataset = data_set(described, coordinates, title)
    return dataset


def _numbered(groups: Mapping[str, int | None], clients: Sequence[str]) -> NDArray[np.int32]:
    known = [groups.get(client) for client in clients]
    return np.array([UNSEEN if group is None else group for group in known], dtype=np.int32)


def to_arviz(hypotheses: HypothesisSet, draws: int = 1000, seed: int = 0) -> xarray.DataTree:
    """Draws from the posterior over associations, as ArviZ takes them.

    ArviZ from 1.0 on (arviz-base, arviz-stats, arviz-plots) reads this tree; earlier ones, as on
    Python 3.11, read the data set of its one group, `tree["posterior"].to_dataset()`. The group
    `posterior` has one chain, with `hypothesis` (chain, draw) and `cluster` (chain, draw, client):
    a hypothesis is drawn by its weight, then the cluster of each client by its membership in it.
    Clusters are named as in the leading hypothesis; -1 is a client never seen.

    Args:
        hypotheses: weighted hypotheses of one round.
        draws: number of draws.
        seed: of the draws.

    Returns:
        The tree with the group `posterior`.

    Raises:
        ValueError: there is no draw.
        ModuleNotFoundError: arviz-base is not installed.
    """
    check_whole("draws", draws)
    try:
        import arviz_base
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "draws for ArviZ need arviz-base: pip install 'bcfl[arviz]'", name="arviz_base"
        ) from error
    chosen, clusters = _draws(hypotheses, draws, generator(seed, "draws of associations"))
    tree: xarray.DataTree = arviz_base.from_dict(
        {"posterior": {"hypothesis": chosen[None], "cluster": clusters[None]}},
        coords={"client": list(hypotheses.best.association.clients)},
        dims={"cluster": ["client"]},
    )
    return tree


def _draws(
    hypotheses: HypothesisSet, draws: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(draws,) hypotheses, and (draws, clients) clusters."""
    weights = hypotheses.weights / hypotheses.weights.sum()
    chosen = random.choice(len(hypotheses), size=draws, p=weights)
    clusters = np.full((draws, len(hypotheses.best.association.clients)), UNSEEN)
    for index, hypothesis in enumerate(hypotheses):
        rows = np.flatnonzero(chosen == index)
        names = match_clusters(hypotheses.best, hypothesis)
        bounds = np.cumsum(hypothesis.membership, axis=1)
        seen = np.flatnonzero(bounds[:, -1] > 0)
        places = random.random((len(rows), len(seen), 1)) * bounds[seen, -1][:, None]
        clusters[np.ix_(rows, seen)] = names[(places >= bounds[seen]).sum(axis=2)]
    return chosen, clusters


def _xarray() -> Any:  # noqa: ANN401 - a module
    try:
        import xarray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "exports need xarray: pip install 'bcfl[export]'", name="xarray"
        ) from error
    return xarray


def _weights(history: Sequence[Snapshot]) -> NDArray[np.float64]:
    """(rounds, hypotheses) probabilities."""
    weights = np.full((len(history), max(len(s.associations) for s in history)), np.nan)
    for row, snapshot in zip(weights, history, strict=True):
        row[: len(snapshot.log_weights)] = np.exp(snapshot.log_weights)
    return weights


def _associations(history: Sequence[Snapshot]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """(rounds, hypotheses, clients) labels, (rounds, clients, clusters) probabilities."""
    clients = len(history[0].associations[0].clients)
    numbers = cluster_numbers(history)
    pairs = zip(history, numbers, strict=True)
    kept = [own for snapshot, rows in pairs for own in rows[: len(snapshot.associations)]]
    clusters = 1 + max(int(own.max()) for own in kept)
    most = max(len(snapshot.associations) for snapshot in history)
    labels = np.full((len(history), most, clients), UNSEEN, dtype=np.int32)
    total = np.zeros((len(history), clients, clusters))
    for snapshot, rows, row, probabilities in zip(history, numbers, labels, total, strict=True):
        hypotheses = zip(snapshot.weights, snapshot.associations, snapshot.memberships, strict=True)
        for index, (weight, association, membership) in enumerate(hypotheses):
            probabilities[:, rows[index]] += weight * membership
            row[index] = renumbered(association.labels, rows[index])
        probabilities[:] = given_seen(probabilities, snapshot.memberships)
    return labels, total


def _shared(snapshot: Snapshot) -> NDArray[np.float64]:
    """(clients, clients) probability that two clients share a cluster."""
    factor = snapshot.believed_co_association().toarray()
    shared = given_both_seen(factor @ factor.T, snapshot.weights, snapshot.memberships)
    np.fill_diagonal(shared, np.where(factor.any(axis=1), 1.0, 0.0))
    return np.minimum(shared, 1.0)
