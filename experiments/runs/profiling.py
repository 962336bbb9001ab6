"""Time and work of a method by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch.utils.flop_counter import FlopCounterMode

from bcfl import Federation, Model, Objective, RoundRecord
from bcfl.data import TRAIN
from bcfl.runtime import device_named, limited_threads

PHASES = ("train", "score", "server", "evaluate")
IN_WORDS = {
    "train": "local training",
    "score": "scoring models on clients",
    "server": "the server's own work",
    "evaluate": "testing the served models",
}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What the rounds of a method cost.

    Attributes:
        rounds: how many were measured.
        seconds: of all rounds, by phase.
        trainings: local trainings requested, and run after deduplication.
        scores: (client, model) pairs requested, and run after deduplication.
        megabytes: sent to clients, and by them.
        training_flops: floating-point operations of the gradients of all trainings.
        peak: floating-point operations per second of a large matrix product on this machine.
    """

    rounds: int
    seconds: Mapping[str, float]
    trainings: tuple[int, int]
    scores: tuple[int, int]
    megabytes: tuple[float, float]
    training_flops: float
    peak: float

    @property
    def achieved(self) -> float:
        """Floating-point operations per second while clients trained; 0 where none did."""
        spent = self.seconds["train"]
        return self.training_flops / spent if spent else 0.0

    @property
    def in_words(self) -> str:
        """Summary of the profile in two sentences."""
        total = sum(self.seconds.values())
        phase = max(PHASES, key=lambda name: self.seconds[name])
        share = self.seconds[phase] / total
        first = f"{share:.0%} of the time is {IN_WORDS[phase]}."
        requested, run = self.trainings
        if not run:
            return f"{first} No client trained."
        work = (
            "each was requested once"
            if requested == run
            else f"{requested / run:.1f} requests for each"
        )
        return (
            f"{first} Training reaches {self.achieved / 1e9:.2f} GFLOP/s, "
            f"{self.achieved / self.peak:.1%} of a large matrix product; of {run} distinct "
            f"trainings, {work}."
        )


def profiled(federation: Federation, rounds: int, peak: float) -> Profile:
    """Run a federation and measure.

    Args:
        federation: what to run.
        rounds: measured; one more before them warms up.
        peak: of the machine, see `matrix_peak`.
    """
    records: Sequence[RoundRecord] = federation.run(rounds + 1).records[1:]
    ledgers = [record.ledger for record in records]
    counts = [len(data.views[TRAIN]) for data in federation.clients]
    objective = federation.method.policy.objective
    shape = tuple(federation.clients[0].views[TRAIN].inputs.shape[1:])
    trained = sum(ledger.trainings_run for ledger in ledgers)
    each = flops_of_training(federation.model, shape, objective, counts)
    return Profile(
        rounds=rounds,
        seconds={name: sum(ledger.seconds.get(name, 0.0) for ledger in ledgers) for name in PHASES},
        trainings=(sum(ledger.trainings_requested for ledger in ledgers), trained),
        scores=(
            sum(ledger.scores_requested for ledger in ledgers),
            sum(ledger.scores_run for ledger in ledgers),
        ),
        megabytes=(
            sum(o.bytes_down for o in ledgers) / 1e6,
            sum(o.bytes_up for o in ledgers) / 1e6,
        ),
        training_flops=trained * each,
        peak=peak,
    )


def flops_of_training(
    model: Model, shape: tuple[int, ...], objective: Objective, counts: Sequence[int]
) -> float:
    """Floating-point operations of the gradients of one training, on average over clients.

    Counted are matrix products and convolutions, forwards and backwards; not the curvature.

    Args:
        model: the architecture.
        shape: of a sample.
        objective: how clients train.
        counts: training samples of each client.
    """
    module = model.module().eval()
    with FlopCounterMode(display=False) as counter:
        module(torch.zeros(1, *shape)).sum().backward()
    samples = sum(min(objective.batch_size, n) * objective.steps(n) for n in counts) / len(counts)
    return float(counter.get_total_flops() * samples)


def matrix_peak(device: str, threads: int, size: int = 1024, repeats: int = 5) -> float:
    """Floating-point operations per second of a square float32 matrix product: the best of some.

    Args:
        device: name of the device.
        threads: of torch and BLAS.
        size: rows and columns.
        repeats: products that are timed, after one that is not.
    """
    place = device_named(device)
    matrix = torch.ones(size, size, device=place)
    best = float("inf")
    with limited_threads(threads):
        for _ in range(repeats + 1):
            started = perf_counter()
            product = matrix @ matrix
            float(product[0, 0])  # waits for a GPU
            best = min(best, perf_counter() - started)
    return 2 * size**3 / best
