"""Similarity of the clients' local models in the first rounds, recomputed from a run.

Runs store no local models; repeating their first rounds reproduces them exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from bcfl.data import Schedule
from bcfl.executors import Unreliable
from bcfl.hypotheses import UNSEEN
from bcfl.protocol import Train, Trained
from bcfl.rounds import RoundConfig, server_round
from bcfl.runtime import limited_threads
from experiments.config.options import chosen
from experiments.reports.pictures.likeness import cosines
from experiments.runs.files import Pair, RunFiles, write_aside
from experiments.runs.plan import read_plan
from experiments.runs.runner import Experiment

if TYPE_CHECKING:
    from bcfl import FederationState, Hypothesis, Model
    from bcfl.executors import Executor, Outcomes
    from bcfl.hypotheses import Posterior
    from bcfl.protocol import Request

ROUNDS = 4
EXACT = "donot_use_mm_for_euclid_dist"
FIELDS = ("rounds", "clusters", "distances", "models", "updates")


@dataclass(frozen=True, eq=False)
class Recorder:
    """Executor that records the trained models it passes on.

    Attributes:
        executor: executor that answers the requests.
        model: the architecture.
        trained: trained models by client and key of the initial model.
        starts: initial models by key.
    """

    executor: Executor
    model: Model
    trained: dict[tuple[str, str], Trained] = field(default_factory=dict)
    starts: dict[str, Posterior] = field(default_factory=dict)

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """See `Executor.answer`."""
        outcomes = self.executor.answer(requests, models, round)
        for request, outcome in outcomes.items():
            if isinstance(request, Train) and isinstance(outcome, Trained):
                self.trained[request.client, request.start] = outcome
                self.starts[request.start] = models[request.start]
        return outcomes


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalModels:
    """Pairwise similarity of the clients' models after local training, in a few rounds.

    Clients are sorted by name. A client without a reply in a round has cluster -1, and its other
    entries are undefined.

    Attributes:
        rounds: (rounds,) int64 numbers of the rounds, from 1.
        clusters: (rounds, clients) int64 cluster after the round in the leading hypothesis.
        distances: (rounds, clients, clients) float32 Euclidean distances of the models.
        models: (rounds, clients, clients) float32 cosine similarity of the models.
        updates: (rounds, clients, clients) float32 cosine similarity of the updates.
    """

    rounds: NDArray[np.int64]
    clusters: NDArray[np.int64]
    distances: NDArray[np.float32]
    models: NDArray[np.float32]
    updates: NDArray[np.float32]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a file written by `write`; None if there is no such file.

        Raises:
            ValueError: the file is not one.
        """
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls(**{name: archive[name] for name in FIELDS})
        except (OSError, KeyError, ValueError, EOFError) as error:
            raise ValueError(f"{str(path)!r} holds no local models: {error}") from error

    def write(self, path: Path) -> None:
        """Write a NumPy archive to a temporary name and rename it."""
        buffer = BytesIO()
        np.savez_compressed(buffer, **{name: getattr(self, name) for name in FIELDS})
        write_aside(path, buffer.getvalue())


def path_of(folder: Path, pair: Pair) -> Path:
    """Path of the local models of a method and seed.

    Args:
        folder: folder of the run.
        pair: the method and seed.
    """
    return RunFiles(folder).of(pair).folder / "local-models.npz"


def record_into(folder: Path, method: str) -> Path:
    """Record the local models of a method with the first seed of a run.

    Recordings of other methods are deleted: a report shows one.

    Args:
        folder: folder of the run.
        method: name of the method.

    Returns:
        Path of the recording.

    Raises:
        ValueError: the folder holds no run, or the run has no such method.
    """
    plan = read_plan(folder)
    chosen("method", method, dict.fromkeys(plan.scenario.methods))
    pair = Pair(method, plan.scenario.seeds[0])
    with limited_threads(plan.threads):
        recorded = record(
            Experiment(
                scenario=plan.scenario,
                device=plan.device,
                executor=plan.executor,
                threads=plan.threads,
            ),
            pair,
        )
    for other in plan.scenario.methods:
        path_of(folder, Pair(other, pair.seed)).unlink(missing_ok=True)
    recorded.write(path_of(folder, pair))
    return path_of(folder, pair)


def record(setup: Experiment, pair: Pair, rounds: int = ROUNDS) -> LocalModels:
    """Repeat the first rounds of a run and compare the clients' local models.

    Of a client that trained from several models, that of the leading hypothesis is used.

    Args:
        setup: the experiment.
        pair: the method and seed.
        rounds: number of rounds, at most those of the experiment.
    """
    federation, planned = setup.federation(pair), setup.scenario.federation.rounds
    config = RoundConfig(
        seed=pair.seed,
        client_fraction=federation.client_fraction,
        evaluate=False,
        schedule=Schedule.of(federation.clients, planned),
    )
    state = federation.initial_state().planned(planned, None)
    executor = federation.executor_of(planned)
    if federation.drop_out:
        executor = Unreliable(executor, federation.drop_out, federation.seed)
    similarities = []
    for _ in range(min(rounds, planned)):
        recorder = Recorder(executor, federation.model)
        before = state
        state, _ = server_round(federation.method, federation.model, recorder, state, config)
        similarities.append(_similarity(recorder, before, state))
    columns = [np.stack(column) for column in zip(*similarities, strict=True)]
    names = ("clusters", "distances", "models", "updates")
    return LocalModels(
        rounds=np.arange(1, len(similarities) + 1), **dict(zip(names, columns, strict=True))
    )


def _similarity(
    recorder: Recorder, before: FederationState, after: FederationState
) -> tuple[NDArray[Any], ...]:
    best = after.hypotheses.best
    parent = before.hypotheses.competing[best.parents[0]] if best.parents else best
    clients, labels = best.association.clients, np.array(best.association.labels)
    size = next(iter(recorder.starts.values())).num_parameters if recorder.starts else 1
    models, changes = np.zeros((2, len(clients), size), dtype=np.float32)
    for row, client in enumerate(clients):
        start = _start(recorder, client, parent, int(labels[row]))
        if start is None:
            labels[row] = UNSEEN
            continue
        models[row] = recorder.trained[client, start].mean.cpu().numpy()
        changes[row] = models[row] - recorder.starts[start].mean(recorder.model).cpu().numpy()
    points = torch.from_numpy(models)
    gaps = torch.cdist(points, points, compute_mode=EXACT).numpy()
    return labels, gaps, cosines(models), cosines(changes)


def _start(recorder: Recorder, client: str, parent: Hypothesis, label: int) -> str | None:
    """Key of the initial model of a client: its cluster's, else any of the hypothesis."""
    keys = [cluster.key for cluster in parent.clusters]
    candidates = [keys[label], *keys] if label != UNSEEN else keys
    tried = [*candidates, *(start for name, start in recorder.trained if name == client)]
    return next((key for key in tried if (client, key) in recorder.trained), None)
