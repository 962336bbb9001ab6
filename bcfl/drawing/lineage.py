"""Lineages of the hypotheses of a run: parents, children and weights over rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx

HYPOTHESIS, START = "hypothesis", "start"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A hypothesis or a proposal of one round.

    Attributes:
        name: node name such as `r3h0` (hypothesis) or `r3p0` (proposal).
        round: round after which it was kept; 0 for an initial hypothesis.
        weight: normalised weight; 0 for a proposal.
        kind: `hypothesis`, `start`, or the kind of proposal.
        parents: names of its parents by descending weight; several if it was merged.
        children: names of its children, proposals included.
    """

    name: str
    round: int
    weight: float
    kind: str
    parents: tuple[str, ...]
    children: tuple[str, ...]

    @property
    def is_proposal(self) -> bool:
        """Whether it was proposed rather than ranked."""
        return self.kind not in (HYPOTHESIS, START)

    @property
    def is_rejected(self) -> bool:
        """Whether it is a proposal that was not accepted."""
        return self.is_proposal and not self.children


@dataclass(frozen=True)
class Line:
    """A chain of parents and children, one node per round.

    A line begins at an initial hypothesis, at a proposal, or at a branch.

    Attributes:
        nodes: nodes in the order of rounds, at least one.
        lineage: name of the nearest proposal among its ancestors, else of the initial hypothesis.
    """

    nodes: tuple[Node, ...]
    lineage: str

    @property
    def first(self) -> Node:
        """First node."""
        return self.nodes[0]

    @property
    def last(self) -> Node:
        """Last node."""
        return self.nodes[-1]


@dataclass(frozen=True)
class HypothesisLineage:
    """The hypotheses of one method and seed over all rounds.

    Attributes:
        nodes: nodes by name, in the order of rounds.
    """

    nodes: Mapping[str, Node]

    @classmethod
    def of(cls, tree: nx.DiGraph[str]) -> HypothesisLineage:
        """From a graph of `bcfl.analysis.graphs.hypothesis_tree`."""
        of: dict[str, dict[str, Any]] = {name: tree.nodes[name] for name in tree}
        ordered = sorted(of, key=lambda name: (of[name]["round"], of[name]["rank"], name))
        starts = sum(data["kind"] == START for data in of.values())
        return cls(
            {
                name: Node(
                    name=name,
                    round=of[name]["round"],
                    weight=1 / starts if of[name]["kind"] == START else of[name]["weight"],
                    kind=of[name]["kind"],
                    parents=tuple(
                        sorted(tree.predecessors(name), key=lambda p: (-of[p]["weight"], p))
                    ),
                    children=tuple(sorted(tree.successors(name))),
                )
                for name in ordered
            }
        )

    @property
    def num_rounds(self) -> int:
        """Number of rounds."""
        return max((node.round for node in self.nodes.values()), default=0)

    @property
    def max_hypotheses(self) -> int:
        """Largest number of hypotheses kept after any round."""
        counts = [0] * (self.num_rounds + 1)
        for node in self.nodes.values():
            counts[node.round] += node.kind == HYPOTHESIS
        return max(counts)

    @property
    def rejected_proposals(self) -> list[Node]:
        """Proposals that were not accepted; those of the last round are still undecided."""
        return [n for n in self.nodes.values() if n.is_rejected and n.round < self.num_rounds]

    @property
    def accepted_proposals(self) -> list[Node]:
        """Proposals that became hypotheses."""
        return [n for n in self.nodes.values() if n.is_proposal and not n.is_rejected]

    def lines(self) -> list[Line]:
        """All lines in the order in which they begin, without rejected proposals.

        At a branch the line continues with the child whose descendants survive longest, the
        heaviest among equals; a merged hypothesis continues the line of its heaviest parent.
        """
        successors = self._successors()
        begun = {name for name in self.nodes if name not in successors.values()}
        lineages: dict[str, str] = {}
        lines = []
        for name in (n for n in self.nodes if n in begun and not self.nodes[n].is_rejected):
            path = [name]
            while path[-1] in successors:
                path.append(successors[path[-1]])
            first = self.nodes[name]
            inherits = first.parents and not first.is_proposal
            lineage = lineages[first.parents[0]] if inherits else name
            lineages.update(dict.fromkeys(path, lineage))
            lines.append(Line(tuple(self.nodes[n] for n in path), lineage))
        return lines

    def survival(self) -> dict[str, tuple[int, float]]:
        """By node, the last round that its descendants survive to and their total weight there."""
        reached: dict[str, tuple[int, float]] = {}
        for name in reversed(list(self.nodes)):
            node = self.nodes[name]
            ends = [reached[child] for child in node.children]
            last = max((end[0] for end in ends), default=node.round)
            weight = sum(end[1] for end in ends if end[0] == last) if ends else node.weight
            reached[name] = last, weight
        return reached

    def _successors(self) -> dict[str, str]:
        reached = self.survival()
        successors: dict[str, str] = {}
        for name, node in self.nodes.items():
            if node.kind == HYPOTHESIS and node.parents:
                parent = node.parents[0]
                before = successors.setdefault(parent, name)
                successors[parent] = max(
                    before, name, key=lambda n: (*reached[n], self.nodes[n].weight)
                )
        return successors


def with_alternatives(
    methods: Mapping[str, HypothesisLineage],
) -> dict[str, HypothesisLineage]:
    """Lineages of methods that ever kept several hypotheses, or accepted a proposal."""
    return {
        method: ancestry
        for method, ancestry in methods.items()
        if ancestry.max_hypotheses > 1 or ancestry.accepted_proposals
    }


def lineages(lines: Iterable[Line]) -> list[str]:
    """Names of the lineages in the order in which they begin."""
    return list(dict.fromkeys(line.lineage for line in lines))


def longest_first(lines: Sequence[Line], reached: Mapping[str, tuple[int, float]]) -> list[Line]:
    """Sort lines by how long their descendants survive, then by weight; parents before children.

    Args:
        lines: lines in the order in which they begin.
        reached: result of `bcfl.drawing.HypothesisLineage.survival`.
    """
    return sorted(lines, key=lambda line: tuple(-part for part in reached[line.first.name]))
