"""The association graph of a run, its communities, and a drawing.

Communities are found by greedy modularity maximisation (Clauset, Newman, Moore, 2004) of the
co-association probabilities, without a given number of clusters. `python -m
experiments.examples.association_graph FILE.png`, association-graph.png by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import networkx as nx
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from bcfl import Federation, Run, methods
from bcfl.analysis import metrics
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine


def trained(rounds: int, clients: int = 24, seed: int = 0) -> Run:
    """Run a federation on handwritten digits with four rotations.

    Args:
        rounds: number of rounds.
        clients: number of clients.
        seed: seed of partition and run.
    """
    split = partitions.rotated(datasets.load("optdigits"), clients=clients, seed=seed)
    method = methods.bcfl_mht(num_clusters=4, max_hypotheses=8)
    model = models.mlp((1, 8, 8), 32, 10)
    return Federation(split, model, method, seed, evaluate=False).run(rounds)


def communities(graph: nx.Graph[str]) -> list[set[str]]:
    """Communities of the graph by greedy modularity maximisation."""
    return list(map(set, nx.community.greedy_modularity_communities(graph, "weight")))


def draw(graph: nx.Graph[str], groups: dict[str, int], path: Path) -> None:
    """Draw clients in the colour of their community, with edge widths by probability.

    Args:
        graph: the association graph.
        groups: community by client.
        path: image file to write.
    """
    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots(subplot_kw={"frame_on": False})
    places = nx.spring_layout(graph, weight="weight", seed=0)
    widths = [2 * graph.edges[edge]["probability"] for edge in graph.edges]
    nx.draw_networkx_edges(graph, places, ax=axes, width=widths, edge_color="#bbbbbb")
    nx.draw_networkx_nodes(graph, places, ax=axes, node_color=[f"C{groups[c]}" for c in graph])
    nx.draw_networkx_labels(graph, places, ax=axes, font_size=7)
    figure.savefig(path, dpi=120)


def main(path: Path, rounds: int = 15) -> None:
    """Print the agreement of communities with the true groups, and draw them.

    Args:
        path: image file to write.
        rounds: number of rounds.
    """
    run = trained(rounds)
    graph = run.association_graph(min_probability=0.05)
    groups = {client: k for k, members in enumerate(communities(graph)) for client in members}
    truth = [run.groups[client] or 0 for client in run.clients]
    ari = metrics.ari(truth, [groups[client] for client in run.clients])
    draw(graph, groups, path)
    print(f"{len(set(groups.values()))} communities, adjusted Rand index {ari:.2f}, {path}")


def _picture(text: str) -> Path:
    path, kinds = Path(text), FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise argparse.ArgumentTypeError(f"must end in one of {', '.join(kinds)}, got {text!r}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"must be in a folder that exists, got {text!r}")
    return path


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("file", _picture, "association-graph.png", "picture to write")
    return line.parse_args(words)


if __name__ == "__main__":
    path = parsed().file
    with limited_threads(1):
        main(path)
