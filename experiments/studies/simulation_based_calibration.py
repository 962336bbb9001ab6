"""Simulation-based calibration of the posterior over associations (Talts et al., 2018).

Clusters, associations and data are drawn from the prior that a federation of linear-Gaussian
clients has; a method then infers them. If its posterior is exact, the rank of a true quantity among
draws from the posterior is uniform. Ties of discrete quantities are broken at random. Quantities do
not depend on labels of clusters: the number of pairs of clients that share a cluster, the number of
clients in the first client's cluster, and the first coefficient of the model that serves it.
`python -m experiments.studies.simulation_based_calibration SIMULATIONS METHODS`: 300 simulations of
the methods below by default. A p-value of the chi-squared test below 0.01 says that ranks are not
uniform; the counts of ranks in ten bins say how: many at both ends, where a posterior is too sure.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from scipy.stats import chisquare

from bcfl import ClientData, Federation, Hypothesis, HypothesisSet, Method, Objective, methods
from bcfl.runtime import limited_threads
from experiments.config.command_line import CommandLine, one_of, positive, several
from experiments.models import linear

CLIENTS, CLUSTERS, PARAMETERS, SAMPLES = 5, 2, 2, 4
DRAWS, BINS = 99, 10
QUANTITIES = ("pairs", "companions", "coefficient")
MODEL = linear(PARAMETERS, 1, likelihood="gaussian", bias=False)
TO_THE_MODE = Objective(
    local_steps=150,
    batch_size=CLIENTS * SAMPLES * PARAMETERS,
    learning_rate=0.5,
    momentum=0.5,
    prior_weight=1.0,
    curvature_samples=None,
)
JOINT = {"evidence": "joint", "fusion": "exact", "temperature": 1.0}
METHODS: Mapping[str, tuple[str, Mapping[str, object], int]] = {
    "exact, joint evidence": ("bcfl-exact", JOINT, 1),
    "exact, evidence at the mean": ("bcfl-exact", {**JOINT, "evidence": "separable"}, 1),
    "greedy, joint evidence": ("bcfl-g", JOINT, 1),
    "greedy": ("bcfl-g", {}, 10),
    "bcfl-mh-6": ("bcfl-mh-6", {}, 10),
    "bcfl-mht-8": ("bcfl-mht-8", {}, 10),
    "bcfl-race-4": ("bcfl-race-4", {}, 10),
}
"""By title: recipe, options, and rounds. All see the same data in every round."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """A federation drawn from the prior.

    Attributes:
        clients: with the drawn data.
        labels: (clients,) true cluster of each.
        coefficients: (clusters, parameters) true model of each cluster.
    """

    clients: Sequence[ClientData]
    labels: NDArray[np.int64]
    coefficients: NDArray[np.float64]

    @property
    def truth(self) -> NDArray[np.float64]:
        """(quantities,) the true values."""
        return quantities(self.labels, self.coefficients)


def simulated(method: Method, seed: int) -> Simulation:
    """Draw clusters from the method's prior, a uniform association, and data with unit noise.

    Each sample depends on one coefficient, so that the exact curvature is diagonal.

    Args:
        method: the method, with the prior precision.
        seed: of the simulation, and of the federation that it is for.
    """
    random = np.random.default_rng(seed)
    rows = SAMPLES * PARAMETERS
    designs = np.zeros((CLIENTS, rows, PARAMETERS))
    designs[:, np.arange(rows), np.arange(rows) % PARAMETERS] = random.uniform(
        0.3, 1.2, size=(CLIENTS, rows)
    )
    federation = federation_of(_clients(designs, np.zeros((CLIENTS, rows))), method, seed)
    prior = federation.initial_state().hypotheses.best.clusters
    means = np.array([cluster.mean(MODEL).double().numpy() for cluster in prior])
    coefficients = means + random.normal(size=means.shape) / np.sqrt(method.prior_precision)
    labels = random.integers(CLUSTERS, size=CLIENTS)
    values = np.einsum("crp,cp->cr", designs, coefficients[labels])
    values += random.normal(size=values.shape)
    return Simulation(_clients(designs, values), labels, coefficients)


def _clients(designs: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[ClientData, ...]:
    return tuple(
        ClientData.from_arrays(f"c{index}", (design, value[:, None]))
        for index, (design, value) in enumerate(zip(designs, values, strict=True))
    )


def federation_of(clients: Sequence[ClientData], method: Method, seed: int) -> Federation:
    """The federation, in double precision.

    Args:
        clients: with their data.
        method: the method.
        seed: of the federation.
    """
    return Federation(clients, MODEL, method, seed=seed, dtype=torch.float64, evaluate=False)


def quantities(labels: NDArray[np.int64], coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quantities that are ranked, in the order of `QUANTITIES`.

    Args:
        labels: (clients,) cluster of each client.
        coefficients: (clusters, parameters) model of each cluster.
    """
    pairs = sum(first == second for first, second in combinations(labels, 2))
    companions = int((labels == labels[0]).sum())
    return np.array([pairs, companions, coefficients[labels[0], 0]], dtype=np.float64)


def posterior_draws(
    hypotheses: HypothesisSet, count: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Quantities of associations and models that are drawn from the posterior.

    Args:
        hypotheses: what a method has inferred.
        count: number of draws.
        random: source of randomness.

    Returns:
        float64 of shape (draws, quantities).
    """
    rows = []
    for index in random.choice(len(hypotheses), size=count, p=hypotheses.weights):
        hypothesis = hypotheses[index]
        labels = _drawn_labels(hypothesis, random)
        models = [cluster.gaussian(MODEL) for cluster in hypothesis.clusters]
        coefficients = np.array(
            [
                random.normal(g.mean.double().numpy(), g.precision.double().rsqrt().numpy())
                for g in models
            ]
        )
        rows.append(quantities(labels, coefficients))
    return np.array(rows)


def _drawn_labels(hypothesis: Hypothesis, random: np.random.Generator) -> NDArray[np.int64]:
    """(clients,) clusters, independent given a belief or one of the associations it mixes."""
    membership = hypothesis.belief
    if membership is None:
        weights, associations = zip(*hypothesis.association.components, strict=True)
        membership = associations[random.choice(len(weights), p=weights)].serving
    cumulated = membership.cumsum(axis=1)
    labels: NDArray[np.int64] = (random.random((len(cumulated), 1)) < cumulated).argmax(axis=1)
    return labels


def randomised_rank(truth: float, draws: NDArray[np.float64], random: np.random.Generator) -> int:
    """Rank of the true value among draws, between 0 and their number; ties are broken at random.

    Args:
        truth: the true value.
        draws: (draws,) values from the posterior.
        random: source of randomness.
    """
    return int((draws < truth).sum() + random.integers((draws == truth).sum() + 1))


def ranks(method: Method, seeds: Sequence[int], rounds: int) -> NDArray[np.int64]:
    """Ranks of the true quantities in one simulation for each seed.

    Args:
        method: the method.
        seeds: of the simulations.
        rounds: rounds of each federation.

    Returns:
        int64 of shape (simulations, quantities), between 0 and `DRAWS`.
    """
    found = []
    for seed in seeds:
        simulation = simulated(method, seed)
        run = federation_of(simulation.clients, method, seed).run(rounds)
        random = np.random.default_rng([seed, 1])
        drawn = posterior_draws(run.hypotheses, DRAWS, random)
        pairs = zip(simulation.truth, drawn.T, strict=True)
        found.append([randomised_rank(true, draws, random) for true, draws in pairs])
    return np.array(found)


def in_bins(found: NDArray[np.int64]) -> NDArray[np.int64]:
    """(bins,) counts of ranks in bins of equal size.

    Args:
        found: (simulations,) ranks.
    """
    return np.bincount(found * BINS // (DRAWS + 1), minlength=BINS)


def uniformity(found: NDArray[np.int64]) -> float:
    """P-value of the chi-squared test that ranks are uniform.

    Args:
        found: (simulations,) ranks.
    """
    return float(chisquare(in_bins(found)).pvalue)


def row(title: str, found: NDArray[np.int64]) -> str:
    """A row of the table.

    Args:
        title: of the method.
        found: (simulations, quantities) ranks.
    """
    cells = (
        f"{uniformity(column):.2g}: {' '.join(map(str, in_bins(column)))}" for column in found.T
    )
    return f"| {title} | " + " | ".join(cells) + " |"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("simulations", positive, 300, "number of simulations")
    line.argument(
        "methods", several(one_of("method", METHODS), ";"), ";".join(METHODS), "separated by ;"
    )
    return line.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    given = parsed(words)
    console = Console(stderr=True)
    print(f"p-value and counts of ranks in {BINS} bins, {given.simulations} simulations\n")
    print("| method | " + " | ".join(QUANTITIES) + " |")
    print("|---|" + "---|" * len(QUANTITIES), flush=True)
    for title in given.methods:
        recipe, options, rounds = METHODS[title]
        method = methods.build(
            recipe, num_clusters=CLUSTERS, objective=TO_THE_MODE, **dict(options)
        )
        seeds = track(range(given.simulations), title, console=console, transient=True)
        print(row(title, ranks(method, list(seeds), rounds)), flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main()
