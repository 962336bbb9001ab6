"""Who trains with whom: the association graph, its communities, and a drawing.

Communities are found by modularity (Clauset, Newman, Moore, 2004), from the probabilities that
clients shared a cluster, without a number of clusters. `python -m
experiments.examples.association_graph FILE.png`, association-graph.png by default.
"""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
from matplotlib.figure import Figure

from bcfl import Federation, Run, methods
from bcfl.runtime.devices import limited_threads
from experiments import datasets, models, partitions
from experiments.scores import metrics


def trained(rounds: int, clients: int = 24, seed: int = 0) -> Run:
    """A federation on handwritten digits that are turned in four ways."""
    drawn = partitions.rotated(datasets.load("optdigits"), clients=clients, seed=seed)
    method = methods.bcfl_mht(num_clusters=4, max_hypotheses=8)
    model = models.mlp((1, 8, 8), 32, 10)
    return Federation(drawn, model, method, seed, evaluate=False).run(rounds)


def communities(graph: nx.Graph[str]) -> list[set[str]]:
    """Groups of clients that share a cluster more often than chance would have it."""
    return list(map(set, nx.community.greedy_modularity_communities(graph, "probability")))


def draw(graph: nx.Graph[str], groups: dict[str, int], path: Path) -> None:
    """Clients as dots in the colour of their community, edges as wide as they are probable."""
    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots(subplot_kw={"frame_on": False})
    places = nx.spring_layout(graph, weight="probability", seed=0)
    widths = [2 * graph.edges[edge]["probability"] for edge in graph.edges]
    nx.draw_networkx_edges(graph, places, ax=axes, width=widths, edge_color="#bbbbbb")
    nx.draw_networkx_nodes(graph, places, ax=axes, node_color=[f"C{groups[c]}" for c in graph])
    nx.draw_networkx_labels(graph, places, ax=axes, font_size=7)
    figure.savefig(path, dpi=120)


def main(path: Path, rounds: int = 15) -> None:
    """Print how communities agree with the true groups, and draw them."""
    run = trained(rounds)
    graph = run.association_graph(min_probability=0.05)
    groups = {client: k for k, one in enumerate(communities(graph)) for client in one}
    truth = [run.groups[client] or 0 for client in run.clients]
    ari = metrics.ari(truth, [groups[client] for client in run.clients])
    draw(graph, groups, path)
    print(f"{len(set(groups.values()))} communities, adjusted Rand index {ari:.2f}, {path}")


if __name__ == "__main__":
    with limited_threads(1):
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "association-graph.png"))
