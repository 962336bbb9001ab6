"""Fewer digits, on demand: how far results are off, and that torch is left as it was."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, methods
from bcfl.executors import (
    BatchedExecutor,
    ExecutorConfig,
    LoopExecutor,
    ProcessesExecutor,
    build_executor,
    select_executor,
)
from bcfl.executors.arithmetic import Computing, computing
from bcfl.executors.sequential import training
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Score, Train
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.loss import Loss

CPU = torch.device("cpu")
DENSE = Model(
    name="dense",
    build=lambda: nn.Sequential(nn.Linear(16, 33), nn.Tanh(), nn.Linear(33, 3)),
    input_shape=(16,),
    num_outputs=3,
)
IMAGES = Model(
    name="images",
    build=lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
    ),
    input_shape=(1, 4, 4),
    num_outputs=3,
)


def clients_of(model, counts=(1, 20, 40)):
    random = np.random.default_rng(0)
    return [
        ClientData.from_arrays(
            f"c{i}",
            (
                random.normal(size=(n, *model.input_shape)).astype(np.float32),
                random.integers(0, 3, n),
            ),
            group=i % 2,
        )
        for i, n in enumerate(counts)
    ]


def born(model):
    return from_initial(model, "k", *model.initial(0), 1.0)


def answers(choice, model, clients, asked):
    start = born(model)
    executor = build_executor(choice, clients, model, 0, CPU, torch.float32)
    return executor.answer(asked, {start.key: start}, 0)


@pytest.mark.parametrize("model", [DENSE, IMAGES], ids=["dense", "images"])
@pytest.mark.parametrize("name", ["loop", "batched"])
def test_mixed_precision_moves_models_by_about_a_percent(name, model):
    """Seven bits are 0.4 %; casts of parameters that were kept would go stale in a training."""
    clients, key = clients_of(model), born(model).key
    asked = [
        Train(data.client, key, Objective(local_steps=10, batch_size=8, learning_rate=0.05))
        for data in clients
    ]
    full = answers(ExecutorConfig(name), model, clients, asked)
    mixed = answers(ExecutorConfig(name, arithmetic="bfloat16"), model, clients, asked)
    for request in asked:
        moved = full[request].mean - model.initial(0)[0]
        error = (mixed[request].mean - full[request].mean).norm() / moved.norm()
        assert 1e-5 < error < 0.05
        assert mixed[request].mean.dtype == torch.float32


@pytest.mark.parametrize("name", ["loop", "batched"])
def test_mixed_precision_leaves_curvature_and_evidence_alone(name):
    clients, start = clients_of(DENSE), born(DENSE)
    still = Objective(local_steps=1, batch_size=8, learning_rate=0.0, curvature="ggn")
    asked = [
        Train("c2", start.key, still),
        Score(client="c2", models=(start.key,), statistic=Evidence()),
    ]
    asked += [Score(client="c2", models=(start.key,), statistic=Loss())]
    full = answers(ExecutorConfig(name), DENSE, clients, asked)
    mixed = answers(ExecutorConfig(name, arithmetic="bfloat16"), DENSE, clients, asked)
    assert torch.equal(full[asked[0]].curvature, mixed[asked[0]].curvature)
    one, other = (found[asked[1]][start.key] for found in (full, mixed))
    assert one.log_likelihood == other.log_likelihood
    assert torch.equal(one.gradient, other.gradient)
    one, other = (found[asked[2]][start.key].total for found in (full, mixed))
    assert one != other
    assert one == pytest.approx(other, rel=1e-2)


def test_mixed_precision_leaves_local_posteriors_alone(monkeypatch):
    mixed = []

    class Fit:
        def fit(self, module, inputs, targets, prior, *, seed):
            mixed.append(torch.is_autocast_enabled("cpu"))
            return SimpleNamespace(mean=prior.mean, curvature=torch.ones_like(prior.mean))

    monkeypatch.setattr(training, "local_posterior_fit", lambda name, likelihood: Fit())
    clients, start = clients_of(DENSE), born(DENSE)
    asked = [
        Train(
            "c2",
            start.key,
            Objective(local_steps=1, batch_size=8, curvature="ggn", posterior="variational"),
        )
    ]
    answers(ExecutorConfig("loop", arithmetic="bfloat16"), DENSE, clients, asked)
    assert mixed == [False]


def test_another_gpu_than_the_first_is_the_current_one(monkeypatch):
    """Streams, recorded steps and our kernels are those of the current device."""
    entered = []

    class Current:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            entered.append(self.device)

        def __exit__(self, *trouble):
            entered.append("left")

    monkeypatch.setattr(torch.cuda, "device", Current)
    second = torch.device("cuda", 1)
    with computing("full", second):
        assert entered == [second]
    assert entered == [second, "left"]


def test_torch_is_left_as_it_was():
    switches = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [switch.allow_tf32 for switch in switches]
    for kind, wanted in (("full", False), ("tf32", True), ("bfloat16", False)):
        with pytest.raises(ZeroDivisionError), computing(kind, CPU):  # noqa: PT012
            assert [switch.allow_tf32 for switch in switches] == [wanted, wanted]
            assert torch.is_autocast_enabled("cpu") is (kind == "bfloat16")
            raise ZeroDivisionError
        assert [switch.allow_tf32 for switch in switches] == before
        assert not torch.is_autocast_enabled("cpu")


def test_tf32_changes_nothing_on_a_cpu():
    clients, start = clients_of(DENSE), born(DENSE)
    asked = [
        Train(data.client, start.key, Objective(local_steps=3, batch_size=8)) for data in clients
    ]
    one, other = (
        answers(ExecutorConfig("loop", arithmetic=kind), DENSE, clients, asked)
        for kind in ("full", "tf32")
    )
    assert all(torch.equal(one[request].mean, other[request].mean) for request in asked)


def test_what_is_built():
    clients = clients_of(DENSE)

    def built(name, arithmetic, device=CPU):
        config = ExecutorConfig(name, arithmetic=arithmetic)
        return build_executor(config, clients, DENSE, 0, device, torch.float32)

    assert isinstance(built("loop", "full"), LoopExecutor)
    mixed = built("auto", "bfloat16")
    assert isinstance(mixed, Computing)
    assert isinstance(mixed.executor, BatchedExecutor)
    assert isinstance(built("processes", "bfloat16"), ProcessesExecutor)
    with pytest.raises(ValueError, match=r"arithmetic must be one of full, tf32, .*'fp8'"):
        ExecutorConfig("loop", arithmetic="fp8")
    cuda = torch.device("cuda")
    assert select_executor(ExecutorConfig(arithmetic="bfloat16"), DENSE, cuda)[0] == "batched"
    with pytest.raises(ValueError, match="full or tf32 for executor 'graph', got 'bfloat16'"):
        select_executor(ExecutorConfig("graph", arithmetic="bfloat16"), DENSE, cuda)


def test_a_run_in_mixed_precision_finds_the_same_clusters():
    """Two groups with opposite labels; the answer is clear, and rounding must not hide it."""
    random = np.random.default_rng(1)
    clients = []
    for i in range(8):
        x = random.normal(size=(40, 16)).astype(np.float32)
        clients.append(
            ClientData.from_arrays(f"c{i}", (x, (x[:, 0] > 0) ^ bool(i % 2)), group=i % 2)
        )
    runs = [
        Federation(
            clients, DENSE, methods.build("ifca", num_clusters=2),
            executor=ExecutorConfig(arithmetic=kind), evaluate=False,
        ).run(4)
        for kind in ("full", "bfloat16")
    ]  # fmt: skip
    one, other = (run.hypotheses.best.association.labels for run in runs)
    assert len(set(one)) == 2
    np.testing.assert_array_equal(one, other)


def test_workers_compute_as_they_are_told():
    clients, start = clients_of(DENSE), born(DENSE)
    asked = [
        Train(data.client, start.key, Objective(local_steps=3, batch_size=8)) for data in clients
    ]
    loop = answers(ExecutorConfig("loop", arithmetic="bfloat16"), DENSE, clients, asked)
    others = ExecutorConfig("processes", workers=1, arithmetic="bfloat16")
    found = answers(others, DENSE, clients, asked)
    assert all(torch.equal(loop[request].mean, found[request].mean) for request in asked)
