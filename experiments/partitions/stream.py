"""Streams: samples arrive in time steps, with concept drift between steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from bcfl import View
from bcfl.data import view_name
from bcfl.runtime import check_whole, generator
from experiments.config.options import chosen
from experiments.datasets.dataset import Dataset
from experiments.partitions.arguments import with_checks
from experiments.partitions.assembly import OVER_CAP, Assembly, Place, Samples
from experiments.partitions.concepts import (
    CONCEPTS,
    Concept,
    noisy_inputs,
    tested_on,
)
from experiments.partitions.feature_skew import equal_parts
from experiments.partitions.noise import Noise, check_noise_fits, standardised_pixels
from experiments.partitions.partition import (
    Indices,
    Partition,
    Split,
    SplitOptions,
    check_clients,
)

BLOCK = 2
SWITCH = 0.5
OTHER_CONCEPT = "excluded by the concept of the step"


@with_checks
def stream(  # noqa: PLR0913 - keywords with defaults
    dataset: Dataset,
    clients: int = 20,
    concept: str = "shifted-labels",
    steps: int = 10,
    order: Literal["sequential", "multi-task"] = "sequential",
    seed: int = 0,
    *,
    noise: tuple[float, float] | None = None,
    by_index: bool = False,
    standardised: bool = False,
    **options: Unpack[SplitOptions],
) -> Partition:
    """Samples in time steps, each under one of several concepts, mostly two.

    Step t of a client is its views `train:t` and `test:t`, and `train` and `test` for step 0 (see
    `bcfl.data.streams`). Steps are disjoint. A client's group is its concept at step 0;
    `experiments.partitions.Partition.concepts` holds those of all steps.

    Args:
        dataset: data set, divided evenly at random among clients and steps.
        clients: number of clients.
        concept: difference of concept 1 from concept 0: `label-halves`, `random-label-halves`,
            `shifted-labels`, `noisy`, `merged-labels`, or `rotations`, which has four concepts,
            images turned by 0, 90, 180 and 270 degrees.
        steps: number of time steps.
        order: `sequential`: all clients have the same concept, which changes to the next every two
            steps; `multi-task`: each client starts with a random concept and changes to the next at
            each step with probability 0.5.
        seed: seed of the partition.
        noise: variance and amount of the concept `noisy`; those of its data set by default.
        by_index: of the concept `noisy`, whether sample i of each view has the same noise, as in
            the authors' program.
        standardised: whether each pixel is scaled to mean 0 and deviation 1 over all samples; noisy
            ones are then clipped to [-1, 1].
        **options: `test_fraction`, `min_samples` (of each step), ...; see
            `experiments.partitions.Split`.

    Raises:
        ValueError: an argument is out of range, or there are too few samples.

    References:
        Zhang (2024), "Asymmetric clustering in federated continual learning", chapter 4, which
        specifies neither the order of concepts nor the number of samples of a step.
    """
    split = Split(**options)
    check_whole("steps", steps, 1)
    check_clients(dataset, clients, split)
    if clients * steps * split.min_samples > len(dataset):
        raise ValueError(
            f"steps={steps} of clients={clients} with min_samples={split.min_samples} require "
            f"{clients * steps * split.min_samples} samples, dataset {dataset.name!r} has "
            f"{len(dataset)}"
        )
    difference = chosen("concept", concept, CONCEPTS)(dataset.name, dataset.num_classes, seed)
    if concept == "noisy":
        alter = Noise.of_data_set(dataset.name, seed, noise, by_index, standardised)
        if not standardised:
            check_noise_fits(dataset)
        difference = noisy_inputs(alter)
    elif noise is not None or by_index:
        raise ValueError(f"noise and by_index are of the concept 'noisy', got concept {concept!r}")
    dataset = standardised_pixels(dataset) if standardised else dataset
    plan = concepts_over_time(clients, steps, order, seed, len(difference.names))
    shares = equal_parts(dataset, clients * steps, seed)
    pieces = []
    for step in range(steps):
        rows, groups = shares[step::steps], plan[:, step].tolist()
        allocated = zip(rows, groups, strict=True)
        rows = [difference.kept_rows(r, dataset.targets[r], g, split) for r, g in allocated]
        assembly = Assembly(
            name=f"{concept} stream",
            seed=seed,
            split=split,
            alter=_AtStep(difference, step),
            relabels=difference.relabels,
        )
        piece = assembly.build(dataset, rows, groups)
        pieces.append(tested_on(piece, difference.tests) if difference.tests else piece)
    joined = _joined(pieces, plan, len(dataset))
    return replace(joined, group_names=difference.names)


def concepts_over_time(
    clients: int, steps: int, order: str, seed: int, count: int = 2
) -> NDArray[np.int64]:
    """(clients, steps) int64 concept of each client at each step.

    Args:
        clients: number of clients.
        steps: number of time steps.
        order: `sequential` or `multi-task`; see `stream`.
        seed: seed of the `multi-task` order.
        count: number of concepts.

    Raises:
        ValueError: the order is unknown.
    """
    if order == "sequential":
        return np.tile(np.arange(steps) // BLOCK % count, (clients, 1))
    if order != "multi-task":
        raise ValueError(f"order must be 'sequential' or 'multi-task', got {order!r}")
    random = generator(seed, "partition", "concepts")
    switches = random.random((clients, steps)) < SWITCH
    first = random.integers(0, count, (clients, 1)) if count > 2 else 0
    concepts: NDArray[np.int64] = (first + np.cumsum(switches, axis=1)) % count
    return concepts


@dataclass(frozen=True)
class _AtStep:
    """Transform of a concept at one time step; noise is independent between steps."""

    concept: Concept
    step: int

    def __call__(self, samples: Samples, place: Place) -> Samples:
        return self.concept.alter(samples, replace(place, view=f"{place.view}:{self.step}"))


@dataclass
class _Client:
    views: dict[str, View] = field(default_factory=dict)
    rows: dict[str, Indices] = field(default_factory=dict)


def _joined(pieces: list[Partition], plan: NDArray[np.int64], samples: int) -> Partition:
    """Join the partitions of the steps into one."""
    first = pieces[0]
    clients = {data.client: _Client() for data in first}
    for step, piece in enumerate(pieces):
        for data in piece:
            for view, samples_of_view in data.views.items():
                name = view_name(view, step)
                clients[data.client].views[name] = samples_of_view
                clients[data.client].rows[name] = piece.indices[data.client][view]
    held = sum(len(rows) for client in clients.values() for rows in client.rows.values())
    over_cap = sum(piece.left_out.get(OVER_CAP, 0) for piece in pieces)
    left_out = {OVER_CAP: over_cap, OTHER_CONCEPT: samples - held - over_cap}
    return replace(
        first,
        clients=tuple(
            replace(data, views=clients[data.client].views, group=int(row[0]))
            for data, row in zip(first, plan, strict=True)
        ),
        indices={name: client.rows for name, client in clients.items()},
        left_out={reason: count for reason, count in left_out.items() if count},
        concepts={name: tuple(row) for name, row in zip(clients, plan.tolist(), strict=True)},
    )
