"""What a run has learnt: predictions, uncertainty, scores, association graphs, figures, export.

Reads values only. Files of runs and reports are in `experiments`.
"""

from bcfl.analysis import loggers, metrics, pairs, rows, saving, selection, uncertainty
from bcfl.analysis.graphs import (
    accumulated_association_graph,
    association_graph,
    client_cluster_graph,
    hypothesis_tree,
    support_graph,
    write_graphs,
)
from bcfl.analysis.plots import (
    plot_association_graph,
    plot_association_reliability,
    plot_cluster_sizes,
    plot_hypothesis_weights,
    plot_reliability,
    plot_uncertain_clients,
)
from bcfl.analysis.prediction.mixture import Prediction
from bcfl.analysis.prediction.numbers import ValuePrediction, score_values
from bcfl.analysis.prediction.tuning import NOISE_GRID, TUNING_GRID
from bcfl.analysis.run import Run
from bcfl.analysis.true_groups import Groups, TrueGroups, groups_after

__all__ = [
    "NOISE_GRID",
    "TUNING_GRID",
    "Groups",
    "Prediction",
    "Run",
    "TrueGroups",
    "ValuePrediction",
    "accumulated_association_graph",
    "association_graph",
    "client_cluster_graph",
    "groups_after",
    "hypothesis_tree",
    "loggers",
    "metrics",
    "pairs",
    "plot_association_graph",
    "plot_association_reliability",
    "plot_cluster_sizes",
    "plot_hypothesis_weights",
    "plot_reliability",
    "plot_uncertain_clients",
    "rows",
    "saving",
    "score_values",
    "selection",
    "support_graph",
    "uncertainty",
    "write_graphs",
]
