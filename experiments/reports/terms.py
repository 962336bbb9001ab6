"""What the headings of tables mean, and whether higher or lower values are better."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Term(NamedTuple):
    """What a heading means.

    Attributes:
        meaning: in one sentence.
        better: 1 if higher is better, -1 if lower is better, 0 if neither.
    """

    meaning: str
    better: int = 0


TRUE_GROUP = "true group"
"""What clients have in common, where these are not the concepts of a stream."""
AUROC = (
    "area under the ROC curve: the probability that one to be detected has a higher score than one "
    "not to be; 0.5 is chance."
)
TERMS: dict[str, Term] = {
    "accuracy": Term("share of test samples predicted right, over all clients together.", 1),
    "step accuracy": Term("accuracy after the last round of each time step, mean over steps.", 1),
    "macro-F1": Term("F1 score of each class, mean over a client's classes, then over clients.", 1),
    "macro F1": Term("F1 score of each label, mean over labels.", 1),
    "micro-F1": Term("F1 score of all labels counted together.", 1),
    "micro F1": Term("F1 score of all labels counted together.", 1),
    "F1 by samples": Term("macro-F1 where clients with more training samples count more.", 1),
    "ARI": Term(
        "adjusted Rand index of clusters and true groups: 1 if they are the same, about 0 by "
        "chance.",
        1,
    ),
    "AMI": Term(
        "adjusted mutual information of clusters and true groups: 1 if they are the same, about 0 "
        "by chance.",
        1,
    ),
    "homogeneity": Term("1 if each cluster has clients of one true group only.", 1),
    "completeness": Term("1 if all clients of each true group share a cluster.", 1),
    "NLL": Term(
        "negative log-likelihood: minus the logarithm of the probability of what is true, mean.",
        -1,
    ),
    "ECE": Term(
        "expected calibration error: mean distance between confidence and the share that is right.",
        -1,
    ),
    "aECE": Term("expected calibration error over bins of equally many samples.", -1),
    "MCE": Term("maximum calibration error: that of the worst bin.", -1),
    "Brier": Term("mean squared distance of predicted probabilities from what is true.", -1),
    "RMSE": Term("root of the mean squared error.", -1),
    "CRPS": Term("continuous ranked probability score, in the unit of the values.", -1),
    "coverage error": Term(
        "mean distance of the share of values inside predictive intervals from their levels.", -1
    ),
    "sharpness": Term("mean standard deviation of the predictions.", -1),
    "AURC": Term("area under the curve of error rate against coverage.", -1),
    "cover@5%": Term("share of samples that can be kept at an error rate of 5 %.", 1),
    "risk@80%": Term("error rate of the 80 % most confident samples.", -1),
    "RMSE@80%": Term("RMSE of the 80 % of samples of least entropy.", -1),
    "AUROC": Term(AUROC, 1),
    "AUPR": Term("area under the curve of precision against recall.", 1),
    "FPR95": Term("share of false alarms at the threshold that detects 95 %.", -1),
    "wrong": Term(f"wrong predictions detected by confidence, AUROC: {AUROC}", 1),
    "other groups": Term("samples of other groups detected by the OOD score, AUROC.", 1),
    "noise": Term("uniform noise detected by the OOD score, AUROC.", 1),
    "by entropy": Term("the same detected by entropy, AUROC.", 1),
    "by MI": Term("the same detected by mutual information of label and model, AUROC.", 1),
    "prediction": Term(
        "how a posterior becomes a prediction. plug-in: the network at the posterior mean; "
        "linearised: the network linearised in its parameters there, averaged over the posterior; "
        "monte-carlo: the mean over networks drawn from it; probit, bridge: the linearised network "
        "averaged in closed form; tuned: with a temperature and a prior precision chosen on "
        "samples set aside."
    ),
    "draws": Term("seeds over which scores are averaged."),
    "time": Term(
        "wall-clock time of training, scoring, server work and tests in all rounds; "
        "beliefs, logging and checkpoints are not in it."
    ),
    "trainings requested": Term("local trainings that all hypotheses asked for."),
    "trainings run": Term("local trainings left after equal ones were run once."),
    "sent down": Term("payload that a client is sent in a round, in units of FedAvg's."),
    "largest round": Term("payload that a client is sent in the round where it is largest."),
    "networks run": Term(
        "different networks that a client scores or trains in a round, by their parameters, in "
        "units of FedAvg's; scoring one counts as much as training it."
    ),
    "bytes down": Term("payload from the server to clients, whole run."),
    "bytes up": Term("payload from clients to the server, whole run."),
    "releases": Term("noisy answers of the client that gave most."),
    "privacy ε": Term("privacy loss of the client that gave most answers."),
}
"""By heading."""


def explained(headings: Iterable[str], group: str = TRUE_GROUP) -> dict[str, str]:
    """The meaning of each heading that has one, in their order.

    Args:
        headings: of the columns of a table.
        group: what the true groups of clients are called.
    """
    return {
        heading: TERMS[heading].meaning.replace(TRUE_GROUP, group)
        for heading in headings
        if heading in TERMS
    }


def better(heading: str) -> int:
    """Whether higher (1), lower (-1) or neither (0) is better in a column.

    Args:
        heading: of the column.
    """
    return TERMS[heading].better if heading in TERMS else 0
