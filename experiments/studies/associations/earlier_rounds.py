"""What do earlier rounds leave of a client in its cavity? Losses by cavities, and without it.

A cavity is a cluster fused without the client's last contribution. The other members trained from
models that contain all its earlier ones. So the log loss of a client's training samples is compared
under its cluster, under its cavity of it, and under the cluster of its group in a federation that
is trained anew without the client; and with the loss of the client's test samples under the same
models. If a model had learned nothing of the client, both samples would have the same expected
loss. *Other* is the loss of training samples under the best of the other clusters, which a
membership probability compares it with. Rotated handwritten digits, 40 clients in 4 groups, 20 test
samples each, the default method.
`python -m experiments.studies.associations.earlier_rounds SAMPLES SEEDS ROUNDS LEFT_OUT`: 20
training samples a client, 2 seeds, 25 rounds, and 10 clients left out in turn by default.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch.nn.functional import cross_entropy

from bcfl import ClientData, Federation, Run, methods
from bcfl.hypotheses import Posterior
from bcfl.runtime import limited_threads
from experiments import datasets, models, partitions
from experiments.config.command_line import CommandLine, not_negative, positive
from experiments.studies.association_posterior import CLIENTS, GROUPS

TESTED = 20
VIEWS = ("train", "test")
Losses = list[float]


def divided(samples: int, seed: int) -> Sequence[ClientData]:
    """The clients, with training and test samples.

    Args:
        samples: training samples of each client.
        seed: of the draw.
    """
    return partitions.rotated(
        datasets.load("optdigits"),
        groups=GROUPS,
        clients=CLIENTS,
        seed=seed,
        samples_per_client=samples + TESTED,
        test_fraction=TESTED / (samples + TESTED),
    )


def trained(clients: Sequence[ClientData], seed: int, rounds: int) -> Run:
    """A run of the default method.

    Args:
        clients: that take part.
        seed: of the run.
        rounds: number of rounds.
    """
    method = methods.build("default", num_clusters=GROUPS)
    model = models.mlp((1, 8, 8), 32, 10)
    return Federation(clients, model, method, seed=seed, evaluate=False).run(rounds)


def log_loss(run: Run, posterior: Posterior, client: ClientData, view: str) -> float:
    """Mean log loss of a client's samples at the mean of a posterior, nats per sample.

    Args:
        run: whose model it is.
        posterior: of a cluster, or a cavity.
        client: with its samples.
        view: which of its samples.
    """
    network = run.model.network(posterior.mean(run.model), posterior.buffers(run.model))
    samples = client.views[view]
    with torch.no_grad():
        return float(cross_entropy(network(samples.inputs.float()), samples.targets))


def _losses(run: Run, own: Posterior, others: Sequence[Posterior], client: ClientData) -> Losses:
    of_own = [log_loss(run, own, client, view) for view in VIEWS]
    return [*of_own, min(log_loss(run, other, client, "train") for other in others)]


def with_the_client(run: Run, client: ClientData) -> tuple[Losses, Losses]:
    """Losses under the cluster that a client trains, and under its cavity.

    Args:
        run: in which the client took part.
        client: with its samples.

    Returns:
        For each, the loss of training samples, of test samples, and of training samples under the
        best other cluster.
    """
    best = run.hypotheses.best
    label = best.association.label(client.client)
    others = [cluster for k, cluster in enumerate(best.clusters) if k != label]
    pair = best.clusters[label], best.cavities[client.client, label]
    cluster, cavity = (_losses(run, model, others, client) for model in pair)
    return cluster, cavity


def without_the_client(run: Run, client: ClientData) -> Losses:
    """Losses under the cluster in which most clients of the client's group are.

    Args:
        run: in which the client took no part.
        client: with its samples.

    Returns:
        As for one model of `with_the_client`.
    """
    best = run.hypotheses.best
    mates = [best.association.label(c) for c in run.clients if run.groups[c] == client.group]
    label = int(np.bincount(mates).argmax())
    others = [cluster for k, cluster in enumerate(best.clusters) if k != label]
    return _losses(run, best.clusters[label], others, client)


def rows(clients: Sequence[ClientData], seed: int, rounds: int, left_out: int) -> Iterator[str]:
    """Rows of the table for one seed: all clients, then those that are left out in turn.

    Args:
        clients: of the federation.
        seed: of the run.
        rounds: number of rounds.
        left_out: number of clients that are left out, in steps of equal size.
    """
    run = trained(clients, seed, rounds)
    of_all = {client.client: with_the_client(run, client) for client in clients}
    ari = f"{run.metrics()['ari']:.2f}"
    yield _row(f"{seed} | {ari} | cluster", [cluster for cluster, _ in of_all.values()])
    yield _row(f"{seed} | {ari} | cavity", [cavity for _, cavity in of_all.values()])
    if not left_out:
        return
    chosen = clients[:: len(clients) // left_out][:left_out]
    yield _row(f"{seed} | {ari} | cavity", [of_all[client.client][1] for client in chosen])
    anew, agreement = [], []
    for client in track(chosen, "left out", console=Console(stderr=True), transient=True):
        rest = [other for other in clients if other is not client]
        other_run = trained(rest, seed, rounds)
        anew.append(without_the_client(other_run, client))
        agreement.append(other_run.metrics()["ari"])
    yield _row(f"{seed} | {np.mean(agreement):.2f} | trained anew", anew)


def _row(title: str, losses: Sequence[Losses]) -> str:
    cells = " | ".join(f"{mean:.3f}" for mean in np.mean(losses, axis=0))
    return f"| {title} | {len(losses)} | {cells} |"


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    line = CommandLine(__doc__)
    line.argument("samples", positive, 20, "training samples of each client")
    line.argument("seeds", positive, 2, "number of seeds")
    line.argument("rounds", positive, 25, "number of rounds")
    line.argument("left_out", not_negative, 10, "number of clients left out in turn")
    given = line.parse_args(words)
    if given.left_out > CLIENTS:
        line.error(f"left_out must be at most {CLIENTS}, got {given.left_out}")
    return given


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    given = parsed(words)
    print("| seed | ARI | model | clients | training samples | test samples | other |")
    print("|---:|---:|---|---:|---:|---:|---:|", flush=True)
    for seed in range(given.seeds):
        for line in rows(divided(given.samples, seed), seed, given.rounds, given.left_out):
            print(line, flush=True)


if __name__ == "__main__":
    with limited_threads(1):
        main()
