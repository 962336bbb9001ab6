"""What clients sent back in the first rounds of a run, which are done again for that.

Runs keep no models of clients. The same rounds give the same models, so they can be had later.
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

from bcfl.hypotheses.association import UNSEEN
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from bcfl.rounds.round import RoundConfig, server_round
from bcfl.runtime.devices import limited_threads
from experiments.config.options import chosen
from experiments.config.variants import Pair
from experiments.report.pictures.likeness import cosines
from experiments.runs.files import RunFiles, write_aside
from experiments.runs.plan import read_plan
from experiments.runs.runner import Experiment

if TYPE_CHECKING:
    from bcfl import FederationState, Model
    from bcfl.executors import Executor
    from bcfl.executors.executor import Outcomes
    from bcfl.hypotheses.hypothesis import Hypothesis
    from bcfl.hypotheses.posterior import Posterior
    from bcfl.protocol.requests import Request

ROUNDS = 4
EXACT = "donot_use_mm_for_euclid_dist"
FIELDS = ("rounds", "clusters", "distances", "models", "updates")


@dataclass(frozen=True, eq=False)
class Recorder:
    """Passes requests on and remembers the models that came back.

    Attributes:
        executor: answers for the clients.
        model: the architecture.
        trained: by client and key of the model it started from, its model after training.
        starts: the models that clients started from, by key.
    """

    executor: Executor
    model: Model
    trained: dict[tuple[str, str], Trained] = field(default_factory=dict)
    starts: dict[str, Posterior] = field(default_factory=dict)

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer as the executor does; see `Executor`."""
        outcomes = self.executor.answer(requests, models, round)
        for request, outcome in outcomes.items():
            if isinstance(request, Train) and isinstance(outcome, Trained):
                self.trained[request.client, request.start] = outcome
                self.starts[request.start] = models[request.start]
        return outcomes


@dataclass(frozen=True, eq=False)
class LocalModels:
    """How alike the clients' models were after they had trained, in each of a few rounds.

    Clients are in the order of their names. One that sent nothing in a round is at cluster -1, and
    its other numbers mean nothing.

    Attributes:
        rounds: (rounds,) numbers of the rounds, from 1.
        clusters: (rounds, clients) cluster of each client after the round, leading hypothesis.
        distances: (rounds, clients, clients) Euclidean distances of the models.
        models: (rounds, clients, clients) their cosines.
        updates: (rounds, clients, clients) cosines of what training changed.
    """

    rounds: NDArray[np.int64]
    clusters: NDArray[np.int64]
    distances: NDArray[np.float32]
    models: NDArray[np.float32]
    updates: NDArray[np.float32]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """From a file that `record` wrote; None if there is no such file.

        Raises:
            ValueError: the file is something else.
        """
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls(**{name: archive[name] for name in FIELDS})
        except (OSError, KeyError, ValueError, EOFError) as error:
            raise ValueError(f"{str(path)!r} holds no local models: {error}") from error

    def write(self, path: Path) -> None:
        """Into a NumPy archive, aside and renamed."""
        buffer = BytesIO()
        np.savez_compressed(buffer, **{name: getattr(self, name) for name in FIELDS})
        write_aside(path, buffer.getvalue())


def path_of(folder: Path, pair: Pair) -> Path:
    """Where the local models of a pair lie in the folder of a run."""
    return RunFiles(folder).of(pair).folder / "local-models.npz"


def record_into(folder: Path, method: str) -> Path:
    """Record the local models of a method with the first seed of a run, beside its checkpoints.

    Those of other methods are dropped: a report shows one.

    Raises:
        ValueError: the folder holds no run, or the run has no such method.
    """
    plan = read_plan(folder)
    chosen("method", method, dict.fromkeys(plan.scenario.methods))
    pair = Pair(method, plan.scenario.seeds[0])
    with limited_threads(plan.threads):
        found = record(Experiment(plan.scenario, plan.device, plan.executor, plan.threads), pair)
    for other in plan.scenario.methods:
        path_of(folder, Pair(other, pair.seed)).unlink(missing_ok=True)
    found.write(path_of(folder, pair))
    return path_of(folder, pair)


def record(setup: Experiment, pair: Pair, rounds: int = ROUNDS) -> LocalModels:
    """Do the first rounds of a pair again and keep how alike the clients' models were.

    Where a client trained from several models, that of the leading hypothesis counts.

    Args:
        setup: the experiment.
        pair: the method and seed.
        rounds: how many, at most those of the experiment.
    """
    federation = setup.federation(pair)
    setting = RoundConfig(pair.seed, federation.client_fraction, evaluate=False)
    state = federation.initial_state()
    found = []
    for _ in range(min(rounds, setup.scenario.federation.rounds)):
        recorder = Recorder(federation.engine, federation.model)
        before = state
        state, _ = server_round(federation.recipe, federation.model, recorder, state, setting)
        found.append(_likeness(recorder, before, state))
    columns = [np.stack(column) for column in zip(*found, strict=True)]
    return LocalModels(np.arange(1, len(found) + 1), *columns)


def _likeness(
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
    """Key of the model that a client started from: its cluster's, else any of the hypothesis'."""
    keys = [cluster.key for cluster in parent.clusters]
    wanted = [keys[label], *keys] if label != UNSEEN else keys
    tried = [*wanted, *(start for name, start in recorder.trained if name == client)]
    return next((key for key in tried if (client, key) in recorder.trained), None)
