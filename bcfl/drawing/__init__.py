"""Figures of associations, hypotheses and calibration, drawn from plain values.

Functions that take a `Run` are in `bcfl.analysis`; pages and files of runs in `experiments`.
matplotlib is imported when something is drawn.
"""

from bcfl.drawing.association_reliability import draw_association_reliability, pair_bin
from bcfl.drawing.client_graph import (
    LARGER,
    LEAST_PROBABILITY,
    MARKERS,
    MOST_CLIENTS,
    ClientGraph,
    GraphPicture,
    draw_client_graphs,
    evenly,
)
from bcfl.drawing.cluster_sizes import cluster_colours, draw_cluster_sizes
from bcfl.drawing.hypothesis_weights import (
    LABELLED,
    draw_hypothesis_weights,
    lineage_colours,
    stacked_panels,
)
from bcfl.drawing.lineage import HypothesisLineage, Line, Node, longest_first, with_alternatives
from bcfl.drawing.memberships import MOST_UNCERTAIN, Memberships, draw_uncertain_clients
from bcfl.drawing.reliability import (
    bin_of,
    draw_reliability,
    kind_styles,
    name_axes,
    wilson,
    with_legend,
)
from bcfl.drawing.style import (
    COLOURS,
    FAINT,
    GROUP_COLOURS,
    INK,
    LINEAGE_COLOURS,
    NARROW,
    SHARES,
    WIDTH,
    in_style,
    is_narrow,
    line_style,
    mark_bands,
    mark_rounds,
    panels,
    spread,
    whole_numbers,
    wrapped,
)

__all__ = [
    "COLOURS",
    "FAINT",
    "GROUP_COLOURS",
    "INK",
    "LABELLED",
    "LARGER",
    "LEAST_PROBABILITY",
    "LINEAGE_COLOURS",
    "MARKERS",
    "MOST_CLIENTS",
    "MOST_UNCERTAIN",
    "NARROW",
    "SHARES",
    "WIDTH",
    "ClientGraph",
    "GraphPicture",
    "HypothesisLineage",
    "Line",
    "Memberships",
    "Node",
    "bin_of",
    "cluster_colours",
    "draw_association_reliability",
    "draw_client_graphs",
    "draw_cluster_sizes",
    "draw_hypothesis_weights",
    "draw_reliability",
    "draw_uncertain_clients",
    "evenly",
    "in_style",
    "is_narrow",
    "kind_styles",
    "line_style",
    "lineage_colours",
    "longest_first",
    "mark_bands",
    "mark_rounds",
    "name_axes",
    "pair_bin",
    "panels",
    "spread",
    "stacked_panels",
    "whole_numbers",
    "wilson",
    "with_alternatives",
    "with_legend",
    "wrapped",
]
