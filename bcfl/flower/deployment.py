"""What a server and the nodes of a deployed federation agree on, and the run of its server.

Independent of Flower: any `bcfl.executors.Grid` reaches the nodes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from bcfl.analysis.rows import Row, privacy_columns, round_row
from bcfl.analysis.run import Run
from bcfl.analysis.true_groups import TrueGroups
from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData, with_validation
from bcfl.data.names import checked_name
from bcfl.data.streams import Schedule, at_step
from bcfl.executors import (
    Executor,
    ExecutorConfig,
    Privacy,
    Randomized,
    RemoteExecutor,
    Site,
    Stepwise,
    ThreadLimited,
    build_executor,
    check_accountant,
    check_covered,
)
from bcfl.federation import Federation
from bcfl.flower.folder import DeploymentFolder
from bcfl.policies import Centralised
from bcfl.rounds.fitting import fitted
from bcfl.rounds.method import Method
from bcfl.rounds.round import RoundConfig, participants, server_round
from bcfl.rounds.state import FederationState, RoundRecord, initial_state
from bcfl.runtime.devices import checked_threads, device_named, limited_threads
from posteriors.torch_state import standard_switches

CPU = torch.device("cpu")
NONE: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Deployment:
    """A federation whose clients hold their samples themselves.

    Server and nodes build the same one: everything but `folder`, `deadline`, `min_clients` and
    `wait`, which the server alone reads, decides what clients answer.

    Attributes:
        clients: names of all clients, those included that join in a later round.
        model: the architecture, as for `Federation`.
        method: the method.
        rounds: of the whole run.
        folder: of runs, on the machine of the server; one of this method and seed is resumed.
        seed: of all randomness.
        client_fraction: share of the clients that take part in a round, in (0, 1].
        num_steps: time steps of the clients' data, over which the rounds are spread.
        threads: limit for torch, BLAS and OpenMP, at the server and on each node; None is no limit.
        deadline: of an exchange, seconds.
        min_clients: clients that must be connected for a round to begin; None is all.
        wait: seconds after which a round begins with fewer; with none it does not. A node is given
            as many, at least 60, to say who it is.
        checkpoint_every: rounds between checkpoints.
        beliefs: whether clients score all clusters once more at checkpoints and after the last
            round, see `belief_every` of `bcfl.Federation.run`; False where they send trained models
            only.
        privacy: how clients randomise what they send; the noise is drawn from a secret of the node.

    Raises:
        ValueError: a number is out of range, names repeat, the method cannot serve so many clients,
            or it pools the samples of clients, or clients cannot randomise its models.
    """

    clients: tuple[str, ...]
    model: Model
    method: Method
    rounds: int
    folder: Path
    seed: int = 0
    client_fraction: float = 1.0
    num_steps: int = 1
    threads: int | None = 1
    deadline: float = 600.0
    min_clients: int | None = None
    wait: float = 60.0
    checkpoint_every: int = 1
    beliefs: bool = True
    privacy: Privacy | None = None

    def __post_init__(self) -> None:
        names = tuple(sorted(checked_name(client) for client in self.clients))
        if not names or len(set(names)) < len(names):
            raise ValueError(f"clients must be distinct names, at least one, got {self.clients}")
        object.__setattr__(self, "clients", names)
        object.__setattr__(self, "folder", Path(self.folder))
        if isinstance(self.method.policy, Centralised):
            raise ValueError(
                f"method {self.method.name!r} pools the samples of clients, which stay on their "
                "nodes; it runs in a simulation alone"
            )
        if not 0 < self.client_fraction <= 1:
            raise ValueError(f"client_fraction must lie in (0, 1], got {self.client_fraction}")
        for name in ("rounds", "num_steps", "deadline", "checkpoint_every"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.min_clients is not None and not 1 <= self.min_clients <= len(names):
            raise ValueError(
                f"min_clients must lie between 1 and the {len(names)} clients, or be None, got "
                f"{self.min_clients}"
            )
        checked_threads(self.threads)
        if self.privacy is not None:
            self.method.check_private(self.network)
        present = participants(names, self.client_fraction, self.seed, 0)
        self.method.check(len(names), len(present))
        self.method.check_rounds(self.method.starts, len(present), range(int(self.rounds)))

    @property
    def network(self) -> Model:
        """The architecture of the method, derived from `model`."""
        return self.method.adapted(self.model)

    @property
    def schedule(self) -> Schedule:
        """Which time step each round belongs to."""
        return Schedule(self.num_steps, self.rounds)

    @standard_switches()
    def site(self, data: ClientData, device: str = "cpu", secret: bytes | None = None) -> Site:
        """What a node answers with for its client.

        Args:
            data: the client's samples.
            device: `cpu`, `cuda` or `cuda:N`; bits are the same on CPUs of one kind alone.
            secret: from which the noise of `privacy` is drawn, known to this node alone. Kept over
                restarts, it gives an exchange that is repeated the same answers: fresh noise could
                be averaged away. None draws one.

        Raises:
            ValueError: the client is not one of this federation, or its samples do not fit.
        """
        if data.client not in self.clients:
            raise ValueError(f"client must be one of {self.clients}, got {data.client!r}")
        network, where = self.network, device_named(device)
        split = fitted(with_validation(data, self.method.validation, self.seed), network, DTYPE)
        config = ExecutorConfig("loop" if where.type == "cpu" else "auto")
        parts = (network, self.seed, where, DTYPE)
        executors = [
            build_executor(config, (at_step(split, step),), *parts)
            for step in range(self.num_steps)
        ]
        executor = self._randomised(Stepwise(executors, self.schedule), split, secret)
        return Site(ThreadLimited(executor, self.threads), (data.client,), network, where)

    def federation(self, clients: Sequence[ClientData]) -> Federation:
        """The same federation in this process, where all samples are at hand.

        Args:
            clients: all clients, with their samples.
        """
        return Federation(
            clients,
            self.model,
            self.method,
            seed=self.seed,
            client_fraction=self.client_fraction,
            device="cpu",
            threads=self.threads,
            executor="loop",
        )

    def _randomised(self, executor: Executor, data: ClientData, secret: bytes | None) -> Executor:
        if self.privacy is None:
            return executor
        seed = _noise_seed(secret or secrets.token_bytes(32), data)
        return Randomized(executor, self.privacy, self.network, seed, by_content=True)

    @standard_switches()
    def run(
        self,
        executor: RemoteExecutor,
        on_round: Callable[[RoundRecord, Row], None] = lambda record, row: None,
        settings: Mapping[str, Any] = NONE,
    ) -> Run:
        """Do the rounds that are left, from the newest checkpoint in the folder.

        Args:
            executor: reaches the nodes.
            on_round: called after each round with its record and its line of `metrics.jsonl`.
            settings: from which this federation was built, kept in the folder.

        Returns:
            The run, whose executor still reaches the nodes: they can be asked more.

        Raises:
            BusyError: another process is working in the folder.
            MissingAccountantError: there is `privacy`, and its epsilon cannot be computed.
            ValueError: the method asks for what `privacy` does not cover.
            CheckpointError: the newest checkpoint is damaged, or of other clients.
            MetricsError: a file of the folder was changed.
        """
        if self.privacy is not None:
            check_accountant()
        records: list[RoundRecord] = []
        files = DeploymentFolder(self.folder, self.method.name, self.seed)
        with files.opened(self.clients, self.model.name, settings) as folder:
            state = (folder.state or self._initial()).planned(self.rounds, None)
            with limited_threads(self.threads):
                while state.round < self.rounds:
                    state, record, row = self._round(executor, state)
                    records.append(record)
                    folder.write(state, row, self._saves(state.round))
                    on_round(record, row)
            run = Run(
                model=self.network,
                state=state,
                records=tuple(records),
                groups=self._groups.after(state.round),
                executor=executor,
                privacy=self.privacy,
            )
            folder.finish(run)
        return run

    @property
    def _groups(self) -> TrueGroups:
        """No group is known; time steps are."""
        unknown = dict.fromkeys(self.clients, (None,))
        return TrueGroups(unknown, self.num_steps, self.rounds)

    def _initial(self) -> FederationState:
        return initial_state(self.method, self.network, self.clients, self.seed, CPU, DTYPE)

    def _saves(self, round: int) -> bool:
        return round >= self.rounds or round % self.checkpoint_every == 0

    def _round(
        self, executor: RemoteExecutor, state: FederationState
    ) -> tuple[FederationState, RoundRecord, Row]:
        """One round, begun when enough clients are connected."""
        started, before = perf_counter(), executor.traffic
        connected = executor.connected(
            state.round, self.min_clients or len(self.clients), self.wait
        )
        config = RoundConfig(
            seed=self.seed,
            client_fraction=self.client_fraction,
            schedule=self.schedule,
            last_round=self.rounds - 1,
            belief_every=self.checkpoint_every if self.beliefs else 0,
        )
        state, record = server_round(self.method, self.network, executor, state, config)
        check_covered(record.ledger.failures)
        row = round_row(record, self._groups, perf_counter() - started)
        row |= privacy_columns(state.releases, self.privacy)
        sent = {name: getattr(executor.traffic, name) - getattr(before, name) for name in TRAFFIC}
        return state, record, row | {"connected": sorted(connected), "traffic": sent}


def _noise_seed(secret: bytes, data: ClientData) -> int:
    """Seed of a client's noise, another one when its samples have changed.

    With equal noise before and after, the difference of two answers would be exact.
    """
    content = blake2b(key=blake2b(secret).digest(), digest_size=8)
    for name in sorted(data.views):
        view = data.views[name]
        for tensor in (view.inputs, view.targets):
            content.update(f"{name} {tuple(tensor.shape)}".encode())
            content.update(tensor.cpu().contiguous().numpy().tobytes())
    return int.from_bytes(content.digest()) >> 1


DTYPE = torch.float32
TRAFFIC = ("messages", "bytes_down", "bytes_up")
OpenDeployment = Callable[[Mapping[str, Any]], Deployment]
"""Builds the federation from Flower's run configuration, at the server and on each node."""
