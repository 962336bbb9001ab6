"""Reading the folder of a run: configuration, summary, rounds and client graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from bcfl.drawing import ClientGraph, HypothesisLineage, Memberships, Palette, evenly, read_concepts
from bcfl.runtime import FEDERATIONS
from experiments.runs.deployed import DEPLOYMENT
from experiments.runs.files import Pair, RunFiles
from experiments.runs.index import read_contents
from experiments.runs.plan import read_description
from experiments.runs.summary import summary_of

if TYPE_CHECKING:
    import networkx as nx

    from experiments.partitions import Partition
    from experiments.runs.runner import Experiment

Round = Mapping[str, Any]
CoAssociation = tuple[NDArray[np.float64], list[int | None]]
GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


AGREEMENT = ("ari", "ami", "homogeneity", "completeness")
"""Scores of clusters beside true groups."""


class NoRunError(ValueError):
    """The folder holds no run, or one of its files cannot be read."""


@dataclass(frozen=True)
class RunFolder:
    """The contents of the folder of a run.

    Attributes:
        path: the folder.
        description: `run.json`: scenario, methods, seeds, versions, machine and command.
        summary: by method and metric, mean, std and values over seeds; empty for an unfinished run.
        rounds: by method and seed, one entry per round that was done; seeds are in the order of the
            scenario, so that the first is the one that commands take.
        left_out: why others of its methods and seeds are left out, a sentence for each.
        one_group: whether all clients share a true group at every time step, see `shares_group`.
        experiment: of the run, where it has been built before.
    """

    path: Path
    description: Mapping[str, Any]
    summary: Mapping[str, Mapping[str, Mapping[str, Any]]]
    rounds: Mapping[str, Mapping[int, Sequence[Round]]] = field(repr=False)
    left_out: Mapping[Pair, str] = field(default_factory=dict)
    one_group: bool = False
    experiment: Experiment | None = field(default=None, repr=False)

    @classmethod
    def read(cls, path: Path, experiment: Experiment | None = None) -> Self:
        """Read all but the graphs.

        Args:
            path: the folder.
            experiment: of the run, where it has been built before.

        Raises:
            FolderError: there is no run in the folder, or another version wrote it, or a file is
                malformed.
            NoRunError: no round is done.
            MetricsError: the rounds of all methods and seeds are malformed; of some, these are left
                out with a warning.
        """
        description, contents = read_description(path), read_contents(path)
        if not contents.rounds:
            raise NoRunError(f"folder {str(path)!r} holds no run: no method has done a round yet")
        summary = summary_of(path, contents).get("methods", {})
        rounds: dict[str, dict[int, Sequence[Round]]] = {m: {} for m in description["methods"]}
        for pair, done in contents.rounds.items():
            rounds[pair.method][pair.seed] = done
        shared = shares_group(path, contents.rounds)
        return cls(path, description, summary, rounds, contents.left_out, shared, experiment)

    def without_vain_scores(self) -> Self:
        """The same without agreement with true groups, where all clients share one."""
        if not self.one_group:
            return self
        unknown = dict.fromkeys(AGREEMENT)
        rounds = {
            method: {seed: [{**row, **unknown} for row in done] for seed, done in seeds.items()}
            for method, seeds in self.rounds.items()
        }
        return replace(self, summary=without_agreement(self.summary), rounds=rounds)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods with at least one round, in the order of the scenario."""
        return tuple(method for method, seeds in self.rounds.items() if seeds)

    @property
    def lacks_samples(self) -> bool:
        """Whether a method was saved from Python without telling where its federation is."""
        known = self.description.get(FEDERATIONS)
        return known is not None and any(method not in known for method in self.methods)

    @property
    def is_deployed(self) -> bool:
        """Whether a server of a deployment wrote it, so that samples are those of nodes."""
        return DEPLOYMENT in self.description

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The resolved scenario."""
        scenario = self.description.get("scenario", {})
        return scenario if isinstance(scenario, Mapping) else {"name": str(scenario)}

    def seeds(self, method: str) -> tuple[int, ...]:
        """Seeds with which a method has done at least one round, ascending."""
        return tuple(sorted(self.rounds[method]))

    def first_seed(self, method: str) -> int:
        """The first seed of the scenario with which a method has done a round."""
        return next(iter(self.rounds[method]))

    @property
    def seed_of_clients(self) -> int:
        """The seed whose division of the samples is shown: the first of the first method."""
        return self.first_seed(self.methods[0])

    @cached_property
    def clients(self) -> Partition | None:
        """The clients with their samples, divided with `seed_of_clients`.

        None where the data are not at hand, or the run has no scenario.
        """
        from experiments.datasets import DataError
        from experiments.runs.plan import FolderError, read_plan
        from experiments.runs.runner import Experiment

        try:
            experiment = self.experiment or Experiment(
                scenario=read_plan(self.path).scenario, device="cpu"
            )
            return experiment.partition(self.seed_of_clients)
        except (DataError, FolderError):
            return None

    def seed_shown(self, methods: Iterable[str]) -> str:
        """Which runs figures of a single seed are of, such as `seed 3`.

        Args:
            methods: those that are shown.
        """
        first = {self.first_seed(method) for method in methods}
        return f"seed {first.pop()}" if len(first) == 1 else "first seed of each method"

    def first(self, method: str) -> Sequence[Round]:
        """Rounds of a method with its first seed."""
        return self.rounds[method][self.first_seed(method)]

    def series(self, method: str, name: str) -> NDArray[np.float64]:
        """(seeds, rounds) a number of each round; NaN where it is unknown or not yet there.

        Args:
            method: label of the method.
            name: of the number.
        """
        return self._over_rounds(method, lambda entry: entry.get(name))

    def facts(self, method: str, name: str) -> NDArray[np.float64]:
        """(seeds, rounds) a number that the method's own policy reported, as `series`.

        Args:
            method: label of the method.
            name: of the number.
        """
        return self._over_rounds(method, lambda entry: (entry.get("facts") or {}).get(name))

    def _over_rounds(self, method: str, read: Callable[[Round], Any]) -> NDArray[np.float64]:
        runs = [self.rounds[method][seed] for seed in self.seeds(method)]
        values = np.full((len(runs), max(map(len, runs))), np.nan)
        for row, run in zip(values, runs, strict=True):
            row[: len(run)] = [_number(read(entry)) for entry in run]
        return values

    def graph(self, method: str, seed: int, clients: int | None = None) -> ClientGraph | None:
        """The client graph of a method and seed, None if its file is missing.

        Args:
            method: name of the method.
            seed: seed of the run.
            clients: keep at most so many, evenly from all groups; None keeps all.

        Raises:
            NoRunError: the file is not GraphML.
        """
        path = RunFiles(self.path).of(Pair(method, seed)).graph("clients")
        return read_client_graph(path, clients) if path.is_file() else None

    def graphs(self, clients: int | None = None) -> dict[str, ClientGraph | None]:
        """The client graph of each method's first seed, see `graph`.

        Raises:
            NoRunError: a file is not GraphML.
        """
        return {m: self.graph(m, self.first_seed(m), clients) for m in self.methods}

    def co_associations(self, method: str, clients: int) -> list[CoAssociation]:
        """For each seed, co-association probabilities and true groups of clients.

        Args:
            method: name of the method.
            clients: at most so many, evenly from all groups.

        Raises:
            NoRunError: a file is not GraphML.
        """
        graphs = (self.graph(method, seed, clients) for seed in self.seeds(method))
        return [co_association(graph) for graph in graphs if graph is not None]

    def memberships(self) -> dict[str, Memberships]:
        """By method, with its first seed; methods that haven't written them yet are left out.

        Raises:
            NoRunError: a file can't be read.
        """
        return {m: read_memberships(path) for m, path in self._first_graphs("clusters").items()}

    def uncertain_with_other_seeds(self, methods: Iterable[str]) -> dict[str, dict[int, int]]:
        """Number of uncertain clients by method and by seed other than its first, where any are.

        Args:
            methods: those that are wanted.

        Raises:
            NoRunError: a file can't be read.
        """
        found: dict[str, dict[int, int]] = {}
        for method in methods:
            for seed in list(self.rounds[method])[1:]:
                path = RunFiles(self.path).of(Pair(method, seed)).graph("clusters")
                number = read_memberships(path).num_uncertain if path.is_file() else 0
                if number:
                    found.setdefault(method, {})[seed] = number
        return found

    def lineages(self) -> dict[str, HypothesisLineage]:
        """By method, with its first seed; methods that haven't written them yet are left out.

        Raises:
            NoRunError: a file isn't a hypothesis tree.
        """
        return {m: read_lineage(path) for m, path in self._first_graphs("hypotheses").items()}

    def _first_graphs(self, kind: str) -> dict[str, Path]:
        files = RunFiles(self.path)
        paths = {m: files.of(Pair(m, self.first_seed(m))).graph(kind) for m in self.methods}
        return {method: path for method, path in paths.items() if path.is_file()}


def without_agreement(
    summary: Mapping[str, Mapping[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    """Metrics by method without those of agreement with true groups.

    Args:
        summary: as in `summary.json`.
    """
    vain = {*AGREEMENT, *(f"mean_{name}" for name in AGREEMENT)}
    return {
        method: {
            name: {
                **known,
                "mean": None,
                "std": None,
                "values": [None] * len(known.get("values", [])),
            }
            if name in vain
            else known
            for name, known in metrics.items()
        }
        for method, metrics in summary.items()
    }


def nothing_to_tell(*, stream: bool) -> str:
    """What follows where all clients share a true group.

    Args:
        stream: whether the true groups are the concepts of a stream.
    """
    shared = "at each time step all clients are of one concept"
    if not stream:
        shared = "all clients are of one true group"
    return f"{shared}, so that agreement such as ARI tells nothing of the methods"


def shares_group(folder: Path, pairs: Iterable[Pair]) -> bool:
    """Whether all clients of a run share a true group at every time step, as far as is known.

    One cluster has an ARI of 1 then, and any others 0.

    Args:
        folder: of the run.
        pairs: its methods and seeds; those that are not finished do not tell.

    Raises:
        NoRunError: a graph cannot be read.
    """
    paths = (RunFiles(folder).of(pair).graph("clients") for pair in pairs)
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return False
    rows = []
    try:
        for element, data in _graphml(path):
            if element.tag != f"{GRAPHML}node":
                break
            concepts = read_concepts(data["concepts"]) if "concepts" in data else ()
            rows.append(concepts or ((int(data["group"]) if "group" in data else None),))
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise _not_of_clients(path, error) from error
    known = [{*step} - {None} for step in zip(*rows, strict=False)]
    return len(rows) > 1 and any(known) and all(len(groups) < 2 for groups in known)


def _not_of_clients(path: Path, error: Exception) -> NoRunError:
    return NoRunError(f"{str(path)!r} is not a GraphML file of clients: {error}")


def co_association(graph: ClientGraph) -> CoAssociation:
    """(clients, clients) probabilities of a graph, 0 where no edge is, and true groups."""
    place = {client: row for row, client in enumerate(graph.groups)}
    together = np.eye(len(place))
    for (first, second), probability in graph.edges.items():
        together[place[first], place[second]] = together[place[second], place[first]] = probability
    return together, list(graph.groups.values())


def read_client_graph(path: Path, clients: int | None = None) -> ClientGraph:
    """Read a client graph in one pass, without holding edges between clients that are left out.

    Args:
        path: GraphML file with the nodes before the edges, as networkx writes it.
        clients: keep at most so many, evenly from all groups; None keeps all.

    Raises:
        NoRunError: the file is not GraphML.
    """
    try:
        return _client_graph(path, clients)
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise _not_of_clients(path, error) from error


def _client_graph(path: Path, clients: int | None) -> ClientGraph:
    groups: dict[str, int | None] = {}
    clusters: dict[str, int] = {}
    edges: dict[tuple[str, str], float] = {}
    kept: dict[str, int | None] | None = None
    palette = Palette()
    for element, data in _graphml(path):
        if element.tag == f"{GRAPHML}node":
            name = element.attrib["id"]
            groups[name] = int(data["group"]) if "group" in data else None
            clusters[name] = int(data.get("cluster", "-1"))
            palette = Palette.union((palette, Palette.of_clients((data,))))
            continue
        kept = evenly(groups, clients) if kept is None else kept
        pair = element.attrib["source"], element.attrib["target"]
        if pair[0] in kept and pair[1] in kept:
            edges[pair] = float(data.get("probability", "1"))
    kept = evenly(groups, clients) if kept is None else kept
    named = {name: clusters[name] for name in kept}
    return ClientGraph(kept, named, edges, len(groups), palette)


def read_memberships(path: Path) -> Memberships:
    """Read clients and clusters; clients that were never seen are left out.

    Raises:
        NoRunError: the file isn't what `bcfl.analysis.client_cluster_graph` made.
    """
    with _graph_of(path, "clusters") as graph:
        return Memberships.of(graph)


def read_lineage(path: Path) -> HypothesisLineage:
    """Read a hypothesis tree.

    Raises:
        NoRunError: the file isn't one.
    """
    with _graph_of(path, "hypotheses") as graph:
        return HypothesisLineage.of(graph.to_directed())


def read_graph(path: Path, kind: str) -> nx.Graph[str]:
    """Read a graph of a run.

    Args:
        path: GraphML file.
        kind: of the graph, for the message.

    Raises:
        NoRunError: the file isn't GraphML.
    """
    with _graph_of(path, kind) as graph:
        return graph


@contextmanager
def _graph_of(path: Path, kind: str) -> Iterator[nx.Graph[str]]:
    import networkx as nx

    try:
        yield nx.read_graphml(path)
    except Exception as error:  # damaged files raise errors of a dozen kinds
        raise NoRunError(f"{str(path)!r} is not a GraphML file of {kind}: {error}") from error


def _graphml(path: Path) -> Iterator[tuple[ElementTree.Element, dict[str, str]]]:
    names: dict[str, str] = {}
    for _, element in ElementTree.iterparse(path):
        if element.tag == f"{GRAPHML}key":
            names[element.attrib["id"]] = element.attrib["attr.name"]
        elif element.tag in (f"{GRAPHML}node", f"{GRAPHML}edge"):
            yield element, {names[d.attrib["key"]]: d.text or "" for d in element}
            element.clear()


def _number(value: Any) -> float:  # noqa: ANN401
    return float(value) if isinstance(value, int | float) else float("nan")
