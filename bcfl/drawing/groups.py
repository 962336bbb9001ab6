"""Colours, shapes and names of true groups, the same in all figures of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bcfl.drawing.style import FAINT, GROUP_COLOURS

MARKERS = "os^Dv*PXp"
LARGER = {"*": 1.5, "^": 1.1, "v": 1.1, "P": 1.15, "X": 1.1, "p": 1.15}
"""Factors that equalise the apparent size of markers."""


def concepts_text(concepts: Iterable[int | None]) -> str:
    """Text such as `0 1 1` of the concepts of a client at all time steps; `-` is unknown.

    Args:
        concepts: at each time step; `read_concepts` reads them again.
    """
    return " ".join("-" if concept is None else str(concept) for concept in concepts)


def read_concepts(text: str) -> tuple[int | None, ...]:
    """Concepts of a client at all time steps from text such as `0 1 1`; `-` is unknown.

    Args:
        text: the attribute `concepts` of a client in a graph.
    """
    return tuple(None if concept == "-" else int(concept) for concept in text.split())


@dataclass(frozen=True)
class Palette:
    """The look of true groups; in a stream they are concepts, of all time steps.

    Attributes:
        groups: those that are known, ascending.
        change: whether clients change their group over time.
    """

    groups: tuple[int, ...] = ()
    change: bool = False

    @classmethod
    def of_clients(cls, clients: Iterable[Mapping[str, Any]]) -> Palette:
        """From the attributes of clients in a graph of `bcfl.analysis`.

        Args:
            clients: for each client, a mapping that may have `group` and `concepts`.
        """
        palette = cls()
        for known in clients:
            concepts = read_concepts(str(known.get("concepts", "")))
            own = int(known["group"]) if "group" in known else None
            palette = palette.including({own, *concepts} - set(palette.groups))
            palette = replace(palette, change=True) if concepts else palette
        return palette

    @classmethod
    def union(cls, palettes: Iterable[Palette]) -> Palette:
        """Of all groups of several.

        Args:
            palettes: the palettes.
        """
        several = list(palettes)
        groups = {group for palette in several for group in palette.groups}
        return cls(tuple(sorted(groups)), any(palette.change for palette in several))

    def including(self, groups: Iterable[int | None]) -> Palette:
        """With further groups.

        Args:
            groups: None is unknown, and left out.
        """
        further = {group for group in groups if group is not None} - set(self.groups)
        return replace(self, groups=tuple(sorted({*self.groups, *further}))) if further else self

    def name(self, group: int) -> str:
        """What legends and tips call a group: `true group 1`, of a stream `concept 1`.

        Args:
            group: the group.
        """
        return f"{'concept' if self.change else 'true group'} {group}"

    def colour(self, group: int | None) -> str:
        """Colour of a group; those of many groups repeat.

        Args:
            group: one of the palette, or None where it is unknown.
        """
        if group is None:
            return FAINT
        return GROUP_COLOURS[self.groups.index(group) % len(GROUP_COLOURS)]

    def marker(self, group: int | None) -> str:
        """Shape of the marker of a group, by its name in matplotlib.

        Args:
            group: one of the palette, or None where it is unknown.
        """
        return "o" if group is None else MARKERS[self.groups.index(group) % len(MARKERS)]
