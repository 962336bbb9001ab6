"""Types of options that several recipes share.

They repeat those of the classes that take them, so that the registry needs no torch; mypy and a
test check that they agree.
"""

from typing import Literal

BeliefTemperature = float | Literal["auto"]
Curvature = Literal["samples", "uniform", "ggn", "mc_ggn", "empirical_fisher"]
Evidence = Literal["separable", "joint", "monte_carlo", "importance"]
Fusion = Literal["precision_weighted", "exact", "literal", "normalised"]
Layers = Literal["all", "classifier", "body"]
LocalPosterior = Literal[
    "laplace-diag",
    "laplace-last-layer",
    "laplace-kron",
    "laplace-full",
    "laplace-subnetwork",
    "variational",
    "nuts",
]
MeasuredBy = Literal["cluster", "cavity"]
Memory = Literal["replace", "forget", "accumulate"]
Move = Literal["split", "birth", "death", "merge"]
ScoredBy = Literal["cluster", "cavity", "crossfit"]
Solver = Literal["auto", "argmin", "heap", "murty", "hungarian", "numba"]
Temperature = float | Literal["mean", "auto"]
TRAINING = (
    "local_steps",
    "local_epochs",
    "batch_size",
    "learning_rate",
    "momentum",
    "weight_decay",
    "prior_weight",
    "curvature_samples",
)
"""Fields of an `Objective` that methods leave to the user."""
OTHER_NAMES = {
    "lr": "learning_rate",
    "eta": "learning_rate",
    "epochs": "local_epochs",
    "steps": "local_steps",
    "wd": "weight_decay",
}
"""What others call them."""
NUMBER_CHANGING: tuple[Move, ...] = ("birth", "death", "merge")
