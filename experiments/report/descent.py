"""Hypotheses of a run as lines of descent: who came from whom, for how long, with what weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from experiments.config.variants import Pair
from experiments.runs.files import RunFiles
from experiments.runs.run_folder import NoRunError, RunFolder

if TYPE_CHECKING:
    import networkx as nx

HYPOTHESIS, START = "hypothesis", "start"


@dataclass(frozen=True)
class Node:
    """A hypothesis or a proposal of one round.

    Attributes:
        name: such as `r3h0` or `r3p0`.
        round: round after which it was there; 0 for a start.
        weight: its probability; 0 for a proposal.
        kind: `hypothesis`, `start`, or how a proposal was made.
        parents: those that it came from, the heaviest first; several if it was merged.
        children: those that came from it, proposals included.
    """

    name: str
    round: int
    weight: float
    kind: str
    parents: tuple[str, ...]
    children: tuple[str, ...]

    @property
    def is_proposal(self) -> bool:
        """Whether it was proposed, not ranked."""
        return self.kind not in (HYPOTHESIS, START)

    @property
    def is_barren(self) -> bool:
        """Whether it was proposed, and nothing came of it."""
        return self.is_proposal and not self.children


@dataclass(frozen=True)
class Line:
    """Nodes that follow one another, one in each round.

    A line begins at a start, at a proposal, or where a hypothesis has more than one successor.

    Attributes:
        nodes: in the order of rounds, at least one.
        lineage: name of the nearest proposal above, or else of the start.
    """

    nodes: tuple[Node, ...]
    lineage: str

    @property
    def first(self) -> Node:
        """Where it begins."""
        return self.nodes[0]

    @property
    def last(self) -> Node:
        """Where it ends, or where it is after the last round."""
        return self.nodes[-1]


@dataclass(frozen=True)
class HypothesisLineage:
    """The hypotheses of one method with one seed.

    Attributes:
        nodes: by name, in the order of rounds.
    """

    nodes: Mapping[str, Node]

    @classmethod
    def of(cls, tree: nx.DiGraph[str]) -> HypothesisLineage:
        """Take what `bcfl.analysis.graphs.hypothesis_tree` made."""
        of: dict[str, dict[str, Any]] = {name: tree.nodes[name] for name in tree}
        ordered = sorted(of, key=lambda name: (of[name]["round"], of[name]["rank"], name))
        return cls(
            {
                name: Node(
                    name,
                    of[name]["round"],
                    of[name]["weight"],
                    of[name]["kind"],
                    tuple(sorted(tree.predecessors(name), key=lambda p: (-of[p]["weight"], p))),
                    tuple(sorted(tree.successors(name))),
                )
                for name in ordered
            }
        )

    @property
    def num_rounds(self) -> int:
        """Rounds done."""
        return max((node.round for node in self.nodes.values()), default=0)

    @property
    def most_at_once(self) -> int:
        """Largest number of hypotheses that were kept after a round."""
        counts = [0] * (self.num_rounds + 1)
        for node in self.nodes.values():
            counts[node.round] += node.kind == HYPOTHESIS
        return max(counts)

    @property
    def dead_proposals(self) -> list[Node]:
        """Proposals that lost; those of the last round haven't been judged yet."""
        return [n for n in self.nodes.values() if n.is_barren and n.round < self.num_rounds]

    @property
    def winners(self) -> list[Node]:
        """Proposals that became hypotheses."""
        return [n for n in self.nodes.values() if n.is_proposal and not n.is_barren]

    def lines(self) -> list[Line]:
        """All lines, in the order in which they begin; barren proposals are left out.

        At a fork the line goes on with the successor whose descendants last longest, the heaviest
        of several; a merged hypothesis goes on with the line of its heaviest parent.
        """
        heirs = self._heirs()
        begun = {name for name in self.nodes if name not in heirs.values()}
        lineages: dict[str, str] = {}
        found = []
        for name in (n for n in self.nodes if n in begun and not self.nodes[n].is_barren):
            path = [name]
            while path[-1] in heirs:
                path.append(heirs[path[-1]])
            first = self.nodes[name]
            inherits = first.parents and not first.is_proposal
            lineage = lineages[first.parents[0]] if inherits else name
            lineages.update(dict.fromkeys(path, lineage))
            found.append(Line(tuple(self.nodes[n] for n in path), lineage))
        return found

    def lasting(self) -> dict[str, tuple[int, float]]:
        """For each node, the last round that its descendants reach and their weight there."""
        reached: dict[str, tuple[int, float]] = {}
        for name in reversed(list(self.nodes)):
            node = self.nodes[name]
            ends = [reached[child] for child in node.children]
            last = max((end[0] for end in ends), default=node.round)
            weight = sum(end[1] for end in ends if end[0] == last) if ends else node.weight
            reached[name] = last, weight
        return reached

    def _heirs(self) -> dict[str, str]:
        reached = self.lasting()
        heirs: dict[str, str] = {}
        for name, node in self.nodes.items():
            if node.kind == HYPOTHESIS and node.parents:
                parent = node.parents[0]
                before = heirs.setdefault(parent, name)
                heirs[parent] = max(before, name, key=lambda n: (*reached[n], self.nodes[n].weight))
        return heirs


def read_descent(run: RunFolder, method: str, seed: int) -> HypothesisLineage | None:
    """The hypotheses of a method with a seed, None if the run hasn't come to write them.

    Raises:
        NoRunError: the file isn't a hypothesis tree.
    """
    path = RunFiles(run.path).of(Pair(method, seed)).graph("hypotheses")
    return read_tree(path) if path.is_file() else None


def read_tree(path: Path) -> HypothesisLineage:
    """Read a hypothesis tree.

    Raises:
        NoRunError: the file isn't one.
    """
    import networkx as nx

    try:
        return HypothesisLineage.of(nx.DiGraph(nx.read_graphml(path)))
    except (ElementTree.ParseError, KeyError, ValueError, nx.NetworkXException) as error:
        raise NoRunError(f"{str(path)!r} is not a GraphML file of hypotheses: {error}") from error


def several(run: RunFolder) -> dict[str, HypothesisLineage]:
    """By method, with its first seed, the hypotheses where there were ever alternatives.

    Methods that kept one hypothesis at a time, and never took a proposal instead, are left out.

    Raises:
        NoRunError: a file isn't a hypothesis tree.
    """
    found = {method: read_descent(run, method, run.seeds(method)[0]) for method in run.methods}
    known = {method: one for method, one in found.items() if one is not None}
    return {m: one for m, one in known.items() if one.most_at_once > 1 or one.winners}


def lineages(lines: Iterable[Line]) -> list[str]:
    """Names of the lineages in the order in which they begin."""
    return list(dict.fromkeys(line.lineage for line in lines))


def longest_first(lines: Sequence[Line], reached: Mapping[str, tuple[int, float]]) -> list[Line]:
    """Lines ordered by how long their descendants last, then by weight; parents before children.

    Args:
        lines: in the order in which they begin.
        reached: what `HypothesisLineage.lasting` says.
    """
    return sorted(lines, key=lambda line: tuple(-part for part in reached[line.first.name]))
