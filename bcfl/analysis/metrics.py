"""Scores of predictions from clients' sums, and of clusterings against the true groups.

Accuracy, F1, ECE, ARI and AMI are fractions; the negative log-likelihood is in nats per sample.
Clients without test data are absent from a mapping or hold no samples, and are ignored; where
no client is left a score is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bcfl.hypotheses.association import Association
from bcfl.protocol.statistics.label_predictions import LabelSums
from bcfl.protocol.statistics.predictions import PredictionSums
from bcfl.protocol.statistics.regression import LEVELS, RegressionSums, coverage_name
from bcfl.runtime import nearest
from posteriors.curvature.likelihood import Likelihood

__all__ = [
    "AGREEMENT",
    "SCORES",
    "SUMMARIES",
    "agreement",
    "ami",
    "ari",
    "brier",
    "check_groups",
    "completeness",
    "ece",
    "homogeneity",
    "label_ece",
    "label_f1",
    "macro_f1_per_client",
    "micro_accuracy",
    "nll",
    "summarise",
    "summarise_labels",
    "summarise_regression",
]

PerClient = Mapping[str, PredictionSums]


def micro_accuracy(per_client: PerClient) -> float:
    """Share of correct predictions over all samples of all clients.

    Args:
        per_client: sums over each client's predictions; those without samples count for nothing.
    """
    total = _total(per_client)
    return nan if total is None else float(np.trace(total.confusion) / total.num_samples)


def macro_f1_per_client(per_client: PerClient, weights: Mapping[str, float] | None = None) -> float:
    """Mean over clients of each client's macro-averaged F1.

    A client's F1 is averaged over the classes that occur among its true or its predicted labels.

    Args:
        per_client: predictions of each client.
        weights: weight of each client, such as its number of training samples, by which published
            scores of WeCFL, CAM and BCFL are weighted; clients without one are left out. Equal by
            default.
    """
    tested = [client for client in sorted(per_client) if per_client[client].num_samples]
    if weights is not None:
        tested = [client for client in tested if client in weights]
    if not tested:
        return nan
    scores = [_macro_f1(per_client[client].confusion) for client in tested]
    if weights is None:
        return float(np.mean(scores))
    return float(np.average(scores, weights=[weights[client] for client in tested]))


def nll(per_client: PerClient) -> float:
    """Mean negative log-likelihood over all samples of all clients, nats per sample.

    Args:
        per_client: sums over each client's predictions; those without samples count for nothing.
    """
    total = _total(per_client)
    return nan if total is None else total.nll / total.num_samples


def brier(per_client: PerClient) -> float:
    """Mean squared distance between predicted distribution and true class, 0 to 2, per sample.

    Args:
        per_client: sums over each client's predictions; those without samples count for nothing.
    """
    total = _total(per_client)
    return nan if total is None else total.brier / total.num_samples


def ece(per_client: PerClient) -> float:
    """Expected calibration error over all samples of all clients: 15 bins of equal width.

    Args:
        per_client: sums over each client's predictions; those without samples count for nothing.

    References:
        Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", eq. 3.
    """
    total = _total(per_client)
    if total is None:
        return nan
    return float(np.abs(total.bin_correct - total.bin_confidence).sum() / total.num_samples)


def summarise(per_client: PerClient) -> dict[str, float]:
    """All scores of a classifier: accuracy, macro_f1, nll, ece and brier.

    Args:
        per_client: sums over each client's predictions; those without samples count for nothing.

    Returns:
        Numbers by those names; NaN without test samples.
    """
    return {
        "accuracy": micro_accuracy(per_client),
        "macro_f1": macro_f1_per_client(per_client),
        "nll": nll(per_client),
        "ece": ece(per_client),
        "brier": brier(per_client),
    }


def summarise_regression(per_client: Mapping[str, RegressionSums]) -> dict[str, float]:
    """Scores of predicted numbers over all samples of all clients; NaN without any.

    Root mean squared error (`rmse`, per value), mean negative log-likelihood (`nll`, nats per
    sample), the shares of values inside the central predictive intervals (`coverage_90` for that of
    90 %), and the mean distance of these shares from their levels (`coverage_error`).

    Args:
        per_client: sums over each client's predictions.

    Returns:
        Numbers by those names.
    """
    total = RegressionSums.total(per_client[client] for client in sorted(per_client))
    if not total.num_samples:
        return dict.fromkeys(SCORES["gaussian"], nan)
    coverage = total.covered / total.num_values
    return {
        "rmse": float(np.sqrt(total.squared_error / total.num_values)),
        "nll": total.nll / total.num_samples,
        **{coverage_name(level): float(c) for level, c in zip(LEVELS, coverage, strict=True)},
        "coverage_error": float(np.abs(coverage - LEVELS).mean()),
    }


def label_f1(per_client: Mapping[str, LabelSums]) -> NDArray[np.float64]:
    """(labels,) F1 of each label over all clients; NaN of one never present nor predicted.

    Args:
        per_client: sums over each client's predictions, at least one.
    """
    total = LabelSums.total(per_client[client] for client in sorted(per_client))
    occurrences = total.predicted + total.present
    f1 = np.full(len(occurrences), nan)
    np.divide(2 * total.correct, occurrences, out=f1, where=occurrences > 0)
    return f1


def label_ece(per_client: Mapping[str, LabelSums]) -> NDArray[np.float64]:
    """(labels,) expected calibration error of the probability that each label is present.

    The mean distance of probability and frequency over 15 bins of equal width.

    Args:
        per_client: sums over each client's predictions, at least one.

    References:
        Naeini, Cooper, Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
        binning".
    """
    total = LabelSums.total(per_client[client] for client in sorted(per_client))
    gaps = np.abs(total.bin_present - total.bin_probability).sum(axis=1)
    return np.asarray(gaps / total.num_samples)


def summarise_labels(per_client: Mapping[str, LabelSums]) -> dict[str, float]:
    """Scores of predicted labels; NaN without any.

    The share of samples whose labels are all right (`accuracy`, or subset accuracy), the F1 of all
    labels together (`micro_f1`) and the mean over clients of their mean over labels (`macro_f1`),
    the mean negative log-likelihood (`nll`, nats per sample), the mean squared distance of
    probability and label (`brier`, 0 to 1), and the mean of `label_ece` (`ece`).

    Returns:
        Numbers by those names.
    """
    tested = {client: sums for client, sums in per_client.items() if sums.num_samples}
    if not tested:
        return dict.fromkeys(SCORES["bernoulli"], nan)
    total = LabelSums.total(tested[client] for client in sorted(tested))
    occurrences = (total.predicted + total.present).sum()
    by_client = [label_f1({client: tested[client]}) for client in sorted(tested)]
    known = [f1[np.isfinite(f1)] for f1 in by_client if np.isfinite(f1).any()]
    return {
        "accuracy": total.exact / total.num_samples,
        "micro_f1": float(2 * total.correct.sum() / occurrences) if occurrences else nan,
        "macro_f1": float(np.mean([f1.mean() for f1 in known])) if known else nan,
        "nll": total.nll / total.num_samples,
        "ece": float(label_ece(tested).mean()),
        "brier": total.brier / (total.num_samples * len(total.present)),
    }


SUMMARIES: Mapping[Likelihood, Callable[[Mapping[str, Any]], dict[str, float]]] = {
    "categorical": summarise,
    "gaussian": summarise_regression,
    "bernoulli": summarise_labels,
}
"""All scores of predictions from clients' sums, by likelihood."""

SCORES: Mapping[Likelihood, tuple[str, ...]] = {
    "categorical": ("accuracy", "macro_f1", "nll", "ece", "brier"),
    "gaussian": ("rmse", "nll", *map(coverage_name, LEVELS), "coverage_error"),
    "bernoulli": ("accuracy", "micro_f1", "macro_f1", "nll", "ece", "brier"),
}
"""Names of these scores, in order."""


def ari(true_groups: ArrayLike, labels: ArrayLike) -> float:
    """Adjusted Rand index of a clustering of clients: 1 for the true groups, 0 by chance.

    Args:
        true_groups: (clients,) true group of each client.
        labels: (clients,) cluster that serves each client; -1 for a client that none serves yet,
            which counts as a cluster of its own.

    Raises:
        ValueError: different numbers of clients in the two.

    References:
        Hubert, Arabie (1985), "Comparing partitions".
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(*_aligned(true_groups, labels)))


def ami(true_groups: ArrayLike, labels: ArrayLike) -> float:
    """Adjusted mutual information of a clustering of clients, normalised by the mean entropy.

    Args:
        true_groups: (clients,) true group of each client.
        labels: (clients,) cluster that serves each client; -1 as in `ari`.

    Raises:
        ValueError: different numbers of clients in the two.

    References:
        Vinh, Epps, Bailey (2010), "Information theoretic measures for clusterings comparison".
    """
    from sklearn.metrics import adjusted_mutual_info_score

    return float(adjusted_mutual_info_score(*_aligned(true_groups, labels)))


def homogeneity(true_groups: ArrayLike, labels: ArrayLike) -> float:
    """How far each cluster holds clients of one group only: 1 if all do, 0 for one cluster.

    Splitting a group costs nothing. Papers on OCFL print it as completeness.

    Args:
        true_groups: (clients,) true group of each client.
        labels: (clients,) cluster that serves each client; -1 as in `ari`.

    Raises:
        ValueError: different numbers of clients in the two.

    References:
        Rosenberg, Hirschberg (2007), "V-measure: a conditional entropy-based external cluster
        evaluation measure", eq. 1.
    """
    from sklearn.metrics import homogeneity_score

    return float(homogeneity_score(*_aligned(true_groups, labels)))


def completeness(true_groups: ArrayLike, labels: ArrayLike) -> float:
    """How far each group lies in one cluster: 1 if all do, so for one cluster too.

    Args:
        true_groups: (clients,) true group of each client.
        labels: (clients,) cluster that serves each client; -1 as in `ari`.

    Raises:
        ValueError: different numbers of clients in the two.

    References:
        Rosenberg, Hirschberg (2007), eq. 2.
    """
    from sklearn.metrics import completeness_score

    return float(completeness_score(*_aligned(true_groups, labels)))


AGREEMENT: Mapping[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "ari": ari,
    "ami": ami,
    "homogeneity": homogeneity,
    "completeness": completeness,
}
"""Scores of a clustering against the true groups, by name."""


def agreement(
    association: Association, true_groups: Mapping[str, int | None] | None
) -> dict[str, float]:
    """All scores of `AGREEMENT` of an association, over the clients whose group is known.

    Args:
        association: whose serving clusters are compared with the groups.
        true_groups: group of each client, None where unknown; None if none is.

    Returns:
        Numbers by those names; NaN where no group is known.

    Raises:
        ValueError: a group is of a client that is not in the association.
    """
    check_groups(true_groups, association.clients, "true_groups")
    known = [
        (group, label)
        for client, label in zip(association.clients, association.labels.tolist(), strict=True)
        if (group := (true_groups or {}).get(client)) is not None
    ]
    if not known:
        return dict.fromkeys(AGREEMENT, nan)
    truth, labels = zip(*known, strict=True)
    return {name: score(truth, labels) for name, score in AGREEMENT.items()}


def check_groups(
    groups: Mapping[str, int | None] | None, clients: Sequence[str], name: str = "groups"
) -> None:
    """Check that groups are of clients that there are; not all need one.

    Args:
        groups: group of each client, None where unknown; None if none is.
        clients: names of the clients that there are.
        name: of the argument, for the message.

    Raises:
        ValueError: a group is of another client.
    """
    others = [client for client in groups or {} if client not in clients]
    if others:
        some = ", ".join(map(repr, clients[:3])) + ", ..." * (len(clients) > 3)
        raise ValueError(
            f"{name} must be of the clients {some}, got a group of {others[0]!r}"
            + (f" and {len(others) - 1} more" if len(others) > 1 else "")
            + f".{nearest(others[0], clients)} Leave out what is not a client of the run"
        )


def _total(per_client: PerClient) -> PredictionSums | None:
    tested = [per_client[client] for client in sorted(per_client) if per_client[client].num_samples]
    return PredictionSums.total(tested) if tested else None


def _macro_f1(confusion: NDArray[np.int64]) -> float:
    occurrences = confusion.sum(axis=0) + confusion.sum(axis=1)
    present = occurrences > 0
    return float(np.mean(2 * np.diag(confusion)[present] / occurrences[present]))


def _aligned(
    true_groups: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    truth, predicted = np.asarray(true_groups, dtype=np.int64), np.array(labels, dtype=np.int64)
    if truth.shape != predicted.shape or truth.ndim != 1:
        raise ValueError(
            "true_groups and labels must be (clients,) both, got "
            f"{truth.shape} and {predicted.shape}"
        )
    unserved = np.flatnonzero(predicted < 0)
    predicted[unserved] = predicted.max(initial=0) + 1 + np.arange(len(unserved))
    return truth, predicted


def __dir__() -> list[str]:
    return __all__
