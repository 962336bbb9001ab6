"""Associations as networkx graphs.

All attributes are numbers or text, so that every graph can be written as GraphML or GEXF.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from math import log
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy

from bcfl.analysis.metrics import check_groups
from bcfl.analysis.true_groups import TrueGroups
from bcfl.hypotheses.association import UNSEEN, Association
from bcfl.hypotheses.history import Snapshot, accumulated_co_association
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.policies.faacl.support import Support
from bcfl.runtime.folders import write_aside

if TYPE_CHECKING:
    import networkx as nx

    from bcfl.analysis.run import Run

LEAST_PROBABILITY = 1e-3
"""Of an edge between two clients in the graphs of a run."""


def support_graph(
    hypothesis: Hypothesis, groups: Mapping[str, int | None] | None = None
) -> nx.DiGraph[str]:
    """Clusters and their devices, with an edge from each supporter to the cluster it supports.

    Nodes are clients and clusters, named `cluster 0` (`_cluster 0` if a client has that name). Node
    attributes: `kind` (`cluster` or `client`), `size` of a cluster (number of devices), `group` of
    a client where known, and its `concepts` where it changes, as in `association_graph`. Edges of
    kind `support` run from supporter to supported cluster and have `p_value`, the largest over the
    supported cluster's devices, in the round in which it was tested last; edges of kind `member`
    run from client to cluster. All attributes are numbers or text.

    Args:
        hypothesis: with the outcomes of support tests in its state; without any there are no such
            edges.
        groups: true group of each client.

    Returns:
        A directed networkx graph of kind `support`.

    Raises:
        ValueError: a group is of an unknown client.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(kind="support")
    association = hypothesis.association
    check_groups(groups, association.clients)
    names = _cluster_names(association.num_clusters, association.clients, " ")
    for name, size in zip(names, association.sizes, strict=True):
        graph.add_node(name, kind="cluster", size=int(size))
    for client, label in zip(association.clients, association.labels, strict=True):
        _add_client(graph, client, groups, kind="client")
        if label != UNSEEN:
            graph.add_edge(client, names[label], kind="member")
    for (own, supporter), p_value in sorted(Support.of(hypothesis.state).p_values.items()):
        graph.add_edge(names[supporter], names[own], kind="support", p_value=float(p_value))
    return graph


def remembers_support(hypothesis: Hypothesis) -> bool:
    """Whether support tests are in the state of a hypothesis, significant or not."""
    return Support.KEY in hypothesis.state


def _cluster_names(count: int, clients: Sequence[str], separator: str) -> list[str]:
    """Names of cluster nodes that no client has: `cluster-0`, or else `_cluster-0` and so on."""
    names, taken = [f"cluster{separator}{cluster}" for cluster in range(count)], set(clients)
    while not taken.isdisjoint(names):
        names = [f"_{name}" for name in names]
    return names


def _add_client(
    graph: nx.Graph[str], client: str, groups: Mapping[str, int | None] | None, **facts: int | str
) -> None:
    group = (groups or {}).get(client)
    known: dict[str, int | str] = {} if group is None else {"group": int(group)}
    if isinstance(groups, TrueGroups) and groups.change:
        known["concepts"] = groups.text(client)
    graph.add_node(client, **facts, **known)


def association_graph(
    hypotheses: HypothesisSet,
    groups: Mapping[str, int | None] | None = None,
    min_probability: float = 0.0,
) -> nx.Graph[str]:
    """Clients, joined by the probability of sharing a cluster, as believed after one round.

    Node attributes: `cluster` (most probable cluster of the leading hypothesis, -1 if never seen)
    and, where known, `group` (true group; in a stream the concept at the time step of the last
    round), and `concepts` where it changes over time steps (those of all steps as text, such as
    `0 1 1`). Edge attributes: `probability`, mixed over hypotheses
    pair by pair, and `weight`, the same, by the name that programs for graphs look for. The graph's
    `edges` says of which round the belief is.

    Args:
        hypotheses: weighted hypotheses of one round.
        groups: true group of each client.
        min_probability: leave out edges below this; edges of probability 0 are never there.

    Returns:
        An undirected networkx graph of kind `association`.

    Raises:
        ValueError: `min_probability` is not in [0, 1], or a group is of an unknown client.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> from bcfl.analysis import association_graph
        >>> graph = association_graph(run.hypotheses, run.groups)
        >>> graph.nodes["ann"]
        {'cluster': 1, 'group': 1}
        >>> round(graph.edges["ann", "bob"]["probability"], 2)
        1.0
    """
    together = np.triu(hypotheses.co_association(), k=1)
    pairs = ((int(i), int(j), float(together[i, j])) for i, j in np.argwhere(together > 0))
    return _joined(
        hypotheses.best.association,
        groups,
        pairs,
        min_probability,
        f"belief after round {hypotheses.round}",
    )


def accumulated_association_graph(
    history: Sequence[Snapshot],
    groups: Mapping[str, int | None] | None = None,
    min_probability: float = 0.0,
) -> nx.Graph[str]:
    """Clients, joined by the share of rounds that they were associated together (BCFL, Figure 4).

    As `association_graph`, but a `probability` is the mean over rounds of the probability over
    hypotheses that both train, and are served by, one cluster; what is believed of memberships is
    left aside. The graph's `edges` says over which rounds the mean is.

    Args:
        history: snapshots of the rounds.
        groups: true group of each client.
        min_probability: leave out edges below this; edges of probability 0 are never there.

    Returns:
        An undirected networkx graph of kind `association`.

    Raises:
        ValueError: no round was done, `min_probability` is not in [0, 1], or a group is of an
            unknown client.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> from bcfl.analysis import accumulated_association_graph
        >>> graph = accumulated_association_graph(run.state.history)
        >>> sorted(graph.edges)
        [('ann', 'bob'), ('cem', 'dan')]
    """
    shared = accumulated_co_association(history)
    return _joined(
        history[-1].associations[0],
        groups,
        zip(shared.row.tolist(), shared.col.tolist(), shared.data.tolist(), strict=True),
        min_probability,
        f"mean over rounds {history[0].round} to {history[-1].round}",
    )


def _joined(
    leading: Association,
    groups: Mapping[str, int | None] | None,
    pairs: Iterable[tuple[int, int, float]],
    min_probability: float,
    edges: str,
) -> nx.Graph[str]:
    """The graph of clients with an edge for each pair of rows and its probability."""
    if not isinstance(min_probability, Real) or not 0 <= min_probability <= 1:
        raise ValueError(
            f"min_probability must be a number between 0 and 1, got {min_probability!r}"
        )
    import networkx as nx

    check_groups(groups, leading.clients)
    graph: nx.Graph[str] = nx.Graph(kind="association", edges=edges)
    for client, label in zip(leading.clients, leading.labels, strict=True):
        _add_client(graph, client, groups, cluster=int(label))
    names = leading.clients
    for row, column, value in pairs:
        if value >= min_probability and value > 0:
            probability = min(value, 1.0)
            graph.add_edge(names[row], names[column], probability=probability, weight=probability)
    return graph


def client_cluster_graph(
    hypotheses: HypothesisSet, groups: Mapping[str, int | None] | None = None
) -> nx.Graph[str]:
    """Clients and clusters, joined by the probability that the client is in the cluster.

    Clusters are named `cluster-0` (`_cluster-0` if a client has that name). Node attributes: `kind`
    (`client` or `cluster`), `bipartite` (0 for clients, 1 for clusters), `size` of a cluster
    (expected number of clients), `group` of a client where known, and its `concepts` where it
    changes, as in `association_graph`. Edge attributes: `probability`, over the kept hypotheses,
    clusters named as in the leading one, and `weight`, the same. The graph's `edges` says of which
    round the belief is.

    Args:
        hypotheses: weighted hypotheses of one round.
        groups: true group of each client, None where it is unknown.

    Returns:
        An undirected bipartite networkx graph of kind `client-cluster`.

    Raises:
        ValueError: a group is of an unknown client.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> from bcfl.analysis import client_cluster_graph
        >>> graph = client_cluster_graph(run.hypotheses)
        >>> graph.edges["ann", "cluster-1"]["probability"] > 0.99
        True
    """
    probabilities = hypotheses.association_probabilities()
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph(
        kind="client-cluster", edges=f"belief after round {hypotheses.round}"
    )
    clients = hypotheses.best.association.clients
    check_groups(groups, clients)
    names = _cluster_names(probabilities.shape[1], clients, "-")
    for name, size in zip(names, probabilities.sum(axis=0), strict=True):
        graph.add_node(name, kind="cluster", bipartite=1, size=float(size))
    for client, row in zip(clients, probabilities, strict=True):
        _add_client(graph, client, groups, kind="client", bipartite=0)
        for index in np.flatnonzero(row > 0):
            probability = float(row[index])
            graph.add_edge(client, names[index], probability=probability, weight=probability)
    return graph


def hypothesis_tree(history: Sequence[Snapshot]) -> nx.DiGraph[str]:
    """Hypotheses and proposals of all rounds, with edges from their parents.

    Nodes are named `r3h0` (round 3, most probable hypothesis) or `r3p0` (round 3, first proposal).
    Node attributes: `round`, `rank`, `weight` (0 for proposals), `log_weight` (nats; left out where
    the weight is 0, since not every format has infinity), `kind` (`hypothesis`, or how a proposal
    was made), `association_entropy` (of hypotheses: mean entropy of what it believes of clients'
    clusters, nats; 0 where it holds an association alone), `sizes` (clients per cluster, as text)
    and `non_empty` (number of clusters with clients). Round 0 is the start, whose hypotheses are
    equally probable. A proposal is made from the trainings of its own round, so its parent is the
    hypothesis of the round before that these belong to; it survives if it is the parent of a
    hypothesis of the next round.

    Args:
        history: snapshots of the rounds, such as `run.state.history`.

    Returns:
        A directed networkx graph of kind `hypothesis-tree`; edges lead to the later round.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> from bcfl.analysis import hypothesis_tree
        >>> sorted(hypothesis_tree(run.state.history).edges)
        [('r0h0', 'r1h0'), ('r1h0', 'r2h0'), ('r2h0', 'r3h0')]
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(kind="hypothesis-tree")
    names: list[str] = []
    for snapshot in history:
        before, names = names, []
        rows = zip(snapshot.log_weights, snapshot.associations, snapshot.parents, strict=True)
        for rank, (log_weight, association, parents) in enumerate(rows):
            names.append(f"r{snapshot.round}h{rank}")
            _add_node(graph, names[-1], association, float(log_weight), "hypothesis")
            entropy = scipy.special.entr(snapshot.memberships[rank]).sum(axis=1).mean()
            graph.nodes[names[-1]]["association_entropy"] = max(float(entropy), 0.0)
            _join(graph, names[-1], parents, before)
        for rank, proposed in enumerate(snapshot.proposals):
            names.append(f"r{snapshot.round}p{rank}")
            _add_node(graph, names[-1], proposed.association, float("-inf"), proposed.kind)
            _join(graph, names[-1], (proposed.parent,), before)
    starts = [data for _, data in graph.nodes(data=True) if data["kind"] == "start"]
    for data in starts:
        data.update(weight=1 / len(starts), log_weight=log(1 / len(starts)))
    return graph


def _add_node(
    graph: nx.DiGraph[str], name: str, association: Association, log_weight: float, kind: str
) -> None:
    round, rank = name[1:].replace("p", "h").split("h")
    sizes = association.sizes
    graph.add_node(
        name,
        round=int(round),
        rank=int(rank),
        weight=float(np.exp(log_weight)),
        kind=kind,
        sizes=" ".join(map(str, sizes)),
        non_empty=int((sizes > 0).sum()),
    )
    if np.isfinite(log_weight):
        graph.nodes[name]["log_weight"] = log_weight


def _join(graph: nx.DiGraph[str], name: str, parents: Sequence[int], before: Sequence[str]) -> None:
    """Edges from the parents; in the first round, from the initial hypotheses."""
    for parent in parents:
        source = before[parent] if before else f"r0h{parent}"
        if source not in graph:
            graph.add_node(
                source,
                round=0,
                rank=parent,
                log_weight=0.0,
                weight=1.0,
                kind="start",
                sizes="",
                non_empty=0,
            )
        graph.add_edge(source, name)


def write_graphs(run: Run, path_of: Callable[[str], Path]) -> None:
    """Write the graphs of a run as GraphML; those that all runs have come last.

    Args:
        run: after its last round.
        path_of: file of a kind of graph: `support`, `clients`, `clusters` and `hypotheses`.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from bcfl.analysis import write_graphs
        >>> with TemporaryDirectory() as folder:
        ...     write_graphs(run, lambda kind: Path(folder) / f"{kind}.graphml")
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['clients.graphml', 'clusters.graphml', 'hypotheses.graphml']
    """
    import networkx as nx

    supports = {"support": run.support_graph()} if run.tests_support else {}
    graphs: Mapping[str, nx.Graph[str]] = {
        **supports,
        "clients": run.association_graph(LEAST_PROBABILITY),
        "clusters": run.client_cluster_graph(),
        "hypotheses": run.hypothesis_tree(),
    }
    for kind, graph in graphs.items():
        buffer = BytesIO()
        nx.write_graphml(graph, buffer)
        write_aside(path_of(kind), buffer.getvalue())
