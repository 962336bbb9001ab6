"""The asymmetric association graph: who supports whom."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from bcfl.association import UNSEEN
from bcfl.hypothesis import Hypothesis
from bcfl.policies.support import Support


def support_graph(
    hypothesis: Hypothesis, groups: Mapping[str, int | None] | None = None
) -> nx.DiGraph[str]:
    """Clusters and their devices, with an edge from each supporter to the cluster it supports.

    Nodes are clusters, named `cluster 0`, and clients. Node attributes: `kind` (`cluster` or
    `client`), `size` of a cluster (number of devices), `group` of a client where known. Edges of
    kind `support` run from supporter to supported cluster and have `p_value`, the largest over the
    supported cluster's devices, in the round in which it was tested last; edges of kind `member`
    run from client to cluster. All attributes are numbers or text.

    Args:
        hypothesis: whose state remembers supports; without any there are no such edges.
        groups: true group of each client.
    """
    graph: nx.DiGraph[str] = nx.DiGraph(kind="support")
    for cluster, size in enumerate(hypothesis.association.sizes):
        graph.add_node(_name(cluster), kind="cluster", size=int(size))
    association = hypothesis.association
    for client, label in zip(association.clients, association.labels, strict=True):
        graph.add_node(client, kind="client")
        group = (groups or {}).get(client)
        if group is not None:
            graph.nodes[client]["group"] = int(group)
        if label != UNSEEN:
            graph.add_edge(client, _name(int(label)), kind="member")
    for (own, supporter), p_value in sorted(Support.of(hypothesis.state).p_values.items()):
        graph.add_edge(_name(supporter), _name(own), kind="support", p_value=float(p_value))
    return graph


def remembers_support(hypothesis: Hypothesis) -> bool:
    """Whether a hypothesis knows of tests of support, be they all without success."""
    return Support.KEY in hypothesis.state


def _name(cluster: int) -> str:
    return f"cluster {cluster}"
