"""What is batched, what is left to the loop, and which executor `auto` is."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Model, Objective
from bcfl.architecture.layout import ALL, BODY, CLASSIFIER, Part
from bcfl.executors import (
    BatchedExecutor,
    ExecutorConfig,
    LoopExecutor,
    build_executor,
    select_executor,
)
from bcfl.executors.stacked.batched import network_of
from bcfl.executors.stacked.dense import DenseNetwork
from bcfl.executors.stacked.descent import StackedSgd, StackedTraining, descend
from bcfl.executors.stacked.grouped import GroupedNetwork
from bcfl.executors.stacked.samples import Samples
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.adaptive_terms import Sparsity
from bcfl.protocol.answers import ClientInfo, Failure
from bcfl.protocol.regularizers import Consolidation, Contrast, Proximal, Sharing
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.support import PairedSupport
from experiments.models import fashion_cnn

CPU = torch.device("cpu")


def of_layers(*layers, shape=(3,)):
    return Model(
        name="made-up", build=lambda: nn.Sequential(*layers), input_shape=shape, num_outputs=2
    )


def frozen():
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    return module


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (of_layers(nn.Flatten(), nn.Linear(9, 2), shape=(1, 3, 3)), DenseNetwork),
        (of_layers(nn.Sequential(nn.Linear(3, 4), nn.Sigmoid()), nn.Linear(4, 2)), DenseNetwork),
        (of_layers(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)), GroupedNetwork),
        (
            of_layers(
                nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2, 2), shape=(1, 3, 3)
            ),
            GroupedNetwork,
        ),
        (of_layers(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), GroupedNetwork),
        (of_layers(nn.BatchNorm2d(1), nn.Flatten(), shape=(1, 1, 2)), GroupedNetwork),
        (of_layers(nn.BatchNorm1d(3, momentum=None), nn.Linear(3, 2)), type(None)),
        (of_layers(nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 2)), type(None)),
        (of_layers(nn.BatchNorm1d(3, affine=False), nn.Linear(3, 2)), type(None)),
        (of_layers(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)), type(None)),
        (of_layers(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 2)), type(None)),
        (of_layers(nn.Linear(3, 2), shape=(3, 3)), type(None)),
        (of_layers(*[nn.Linear(3, 3)] * 2), type(None)),
        (Model(name="frozen", build=frozen, input_shape=(3,), num_outputs=2), type(None)),
    ],
)
def test_which_networks_are_known(model, kind):
    assert type(network_of(model)) is kind


@dataclass(frozen=True)
class Wider(Objective):
    """An objective with something that nobody has heard of yet."""

    news: int = 0


def test_what_nobody_has_taught_it_is_left_to_the_loop(linear, clients, newborn):
    executor = BatchedExecutor.on(clients, linear, 0, CPU, torch.float32)
    start = newborn(linear).key
    assert executor.supports(Train("c0", start, Wider(local_steps=2, batch_size=4)))
    assert not executor.supports(Train("c0", start, Wider(local_steps=2, batch_size=4, news=1)))
    assert not executor.supports(
        Train("c0", start, Objective(local_steps=2, batch_size=4, curvature="mc_ggn"))
    )
    fitted = Objective(local_steps=2, batch_size=4, curvature="ggn", posterior="laplace-full")
    assert not executor.supports(Train("c0", start, fitted))


def test_what_is_left_to_the_loop(linear, clients, newborn):
    executor = BatchedExecutor.on(clients, linear, 0, CPU, torch.float32)
    start = newborn(linear)
    plain, regularizers = (
        Objective(local_steps=2, batch_size=4),
        Objective(
            local_steps=2, batch_size=4, regularizers=(Contrast(sees="outputs"), Sparsity(part=ALL))
        ),
    )
    phases = Objective(local_steps=2, batch_size=4, phases=(("model",),))
    left = [
        Describe("c0"),
        Train("x", start.key, plain),
        Train("c0", start.key, regularizers, ((), ())),
        Train("c0", start.key, phases),
        Score(client="c0", models=(start.key, start.key), statistic=PairedSupport()),
        Score(client="c0", models=(start.key,), view="nowhere"),
    ]
    assert not any(executor.supports(request) for request in left)
    assert executor.supports(Train("c0", start.key, plain))
    loop = LoopExecutor.on(clients, linear, 0, CPU, torch.float32)
    models = {start.key: start}
    wanted, found = loop.answer(left, models, 0), executor.answer(left, models, 0)
    assert found[left[0]] == wanted[left[0]] == ClientInfo({"train": 8, "test": 4}, (3,))
    assert isinstance(found[left[1]], Failure)
    assert isinstance(found[left[5]], Failure)
    assert torch.equal(found[left[2]].mean, wanted[left[2]].mean)
    assert torch.equal(found[left[3]].mean, wanted[left[3]].mean)


def test_a_model_that_is_not_known_is_left_to_the_loop(clients, newborn):
    averaging = of_layers(nn.BatchNorm1d(3, momentum=None), nn.Linear(3, 2))
    executor = BatchedExecutor.on(clients, averaging, 0, CPU, torch.float32)
    start = newborn(averaging)
    request = Train("c1", start.key, Objective(local_steps=2, batch_size=4))
    assert not executor.supports(request)
    found = executor.answer([request], {start.key: start}, 0)[request]
    wanted = executor.loop.answer([request], {start.key: start}, 0)[request]
    assert torch.equal(found.buffers, wanted.buffers)


@pytest.mark.parametrize("norm", ["batch", "group", "none"])
@pytest.mark.parametrize(
    ("dtype", "rate", "within"), [(torch.float64, 0.01, 1e-10), (torch.float32, 0.001, 1e-5)]
)
def test_a_round_of_the_network_of_the_papers(norm, dtype, rate, within):
    """Clients of one sample, of less than a batch, of a batch and a bit, of two.

    In float32 steps are small: where rounding tips a maximum over pixels, as it does on other draws
    of these images, more than the last digits change.
    """
    model, random = fashion_cnn(norm=norm), np.random.default_rng(8)
    clients = [
        ClientData.from_arrays(
            f"c{count}", (random.normal(size=(count, 1, 28, 28)), random.integers(0, 10, count))
        )
        for count in (1, 7, 33, 64)
    ]
    executor = BatchedExecutor.on(clients, model, 0, CPU, dtype)
    starts = [
        from_initial(model, f"k{seed}", mean.to(dtype), (buffers + 0.1 * seed).to(dtype), 1.0)
        for seed, (mean, buffers) in ((seed, model.initial(seed)) for seed in range(2))
    ]
    models = {start.key: start for start in starts}
    objective = Objective(
        local_steps=3, batch_size=32, learning_rate=rate, curvature="ggn", curvature_samples=4
    )
    trains = [Train(data.client, key, objective) for data in clients for key in models]
    scores = [Score(client=data.client, models=tuple(models)) for data in clients]
    assert all(executor.supports(request) for request in (*trains, *scores))
    found = executor.answer([*trains, *scores], models, 3)
    wanted = executor.loop.answer([*trains, *scores], models, 3)
    for request in trains:
        one, other = wanted[request], found[request]
        for name in ("mean", "buffers", "curvature"):
            left, right = getattr(one, name), getattr(other, name)
            assert (left - right).norm() <= within * left.norm(), name
    for request in scores:
        for key in models:
            assert found[request][key].total == pytest.approx(wanted[request][key].total, 1e-5)


@dataclass(frozen=True)
class Quartic:
    """A term without a gradient of its own."""

    weight: float = 0.3
    part: Part = ALL
    sees: str = "parameters"

    def penalty(self, live, start, references):
        return (live - references[0]).pow(4).sum() + start.square().sum()


def test_regularisers_of_the_parameters_are_batched(batch_norm, clients, newborn):
    """Whole networks and parts, with clients' own references and numbers of references."""
    executor = BatchedExecutor.on(clients, batch_norm, 0, CPU, torch.float32)
    models = {start.key: start for start in (newborn(batch_norm, seed) for seed in range(4))}
    a, b, c, d = models
    terms = (Proximal(0.5), Contrast(0.7, part=CLASSIFIER), Sharing(0.2, BODY), Quartic())
    objective = Objective(local_steps=4, batch_size=3, learning_rate=0.05, regularizers=terms)
    anchored = replace(objective, regularizers=(Consolidation(),))
    trains = [
        Train("c0", a, objective, ((), (b, c), (d,), (b,))),
        Train("c1", a, objective, ((), (b, c), (d,), (c,))),
        Train("c2", b, objective, ((), (a, c), (d,), (c,))),
        Train("c1", c, objective, ((), (), (), (d,))),
        Train("c0", a, anchored, ((b, c),)),
        Train("c1", b, anchored, ((c, d),)),
    ]
    assert all(executor.supports(train) for train in trains)
    found, wanted = executor.answer(trains, models, 1), executor.loop.answer(trains, models, 1)
    for train in trains:
        torch.testing.assert_close(found[train].mean, wanted[train].mean, atol=1e-5, rtol=1e-4)


def problems_of(model, counts, steps=3):
    """Trainings from distinct networks on samples of their own, all of a batch."""
    random = torch.Generator().manual_seed(1)
    total, batch = sum(counts), min(counts)
    samples = Samples(
        torch.randn(total, *model.input_shape, generator=random),
        torch.randint(0, model.num_outputs, (total,), generator=random),
        {},
        {},
    )
    starts = [model.initial(seed) for seed in range(len(counts))]
    return StackedTraining(
        network=network_of(model),
        model=model,
        samples=samples,
        parameters=torch.stack([mean for mean, _ in starts]),
        buffers=torch.stack([buffers for _, buffers in starts]),
        pull=torch.ones(len(counts), model.layout.num_parameters),
        rows=torch.randint(0, total, (steps, len(counts), batch), generator=random),
        shares=torch.full((len(counts), batch), 1 / batch),
    )


def test_steps_work_in_place_and_can_be_gone_again(batch_norm):
    problems, objective = (
        problems_of(batch_norm, (5, 6, 5)),
        Objective(local_steps=3, batch_size=5, learning_rate=0.1, momentum=0.9, weight_decay=0.01),
    )
    sgd = StackedSgd.of(problems, objective)
    held = (sgd.parameters, sgd.buffers, sgd.velocity, sgd.gradients)
    places = [tensor.data_ptr() for tensor in held]
    for rows in problems.rows.flip(0):
        sgd.step(rows)
    sgd.restart()
    for rows in problems.rows:
        sgd.step(rows)
    assert [tensor.data_ptr() for tensor in held] == places
    parameters, buffers = descend(problems, objective)
    assert torch.equal(sgd.parameters, parameters)
    assert torch.equal(sgd.buffers, buffers)
    assert not torch.equal(parameters, problems.parameters)
    assert not torch.equal(buffers, problems.buffers)


def test_data_are_kept_once(linear, clients):
    executor = BatchedExecutor.on(clients, linear, 0, CPU, torch.float32)
    all_inputs = executor.samples["train"].inputs
    own = executor.loop.clients["c2"].views["train"].inputs
    assert own.untyped_storage().data_ptr() == all_inputs.untyped_storage().data_ptr()
    assert torch.equal(own, clients[2].views["train"].inputs)


@pytest.mark.parametrize(
    ("model", "device", "name"),
    [
        (of_layers(nn.Linear(3, 2)), "cpu", "batched"),
        (of_layers(nn.Conv2d(1, 2, 3), nn.Flatten(), shape=(1, 3, 3)), "cpu", "loop"),
        (of_layers(nn.Conv2d(1, 2, 3), nn.Flatten(), shape=(1, 3, 3)), "cuda", "graph"),
        (of_layers(nn.BatchNorm1d(3), nn.Linear(3, 2)), "cpu", "loop"),
        (of_layers(nn.BatchNorm1d(3), nn.Linear(3, 2)), "cuda", "graph"),
        (of_layers(nn.LayerNorm(3), nn.Linear(3, 2)), "cuda", "loop"),
    ],
)
def test_auto_depends_on_model_and_device(model, device, name):
    assert select_executor(ExecutorConfig(), model, torch.device(device))[0] == name


def test_an_executor_that_is_asked_for_is_taken(linear, clients):
    for name, kind in (("loop", LoopExecutor), ("batched", BatchedExecutor)):
        executor = build_executor(ExecutorConfig(name), clients, linear, 0, CPU, torch.float32)
        assert isinstance(executor, kind)


def test_bad_choices_say_what_is_allowed():
    with pytest.raises(ValueError, match=r"executor must be one of auto, loop, .*'fast'"):
        ExecutorConfig("fast")
    with pytest.raises(ValueError, match="memory must be a whole number of bytes"):
        ExecutorConfig("batched", 0)


def test_clients_train_for_epochs_of_their_own_samples():
    """Batched answers are those of the loop with as many steps as each client's epochs have."""
    random = np.random.default_rng(0)
    sizes = {"a": 7, "b": 40, "c": 40, "d": 65}
    clients = [
        ClientData.from_arrays(
            name,
            (random.normal(size=(n, 3)).astype(np.float32), random.integers(0, 2, n)),
            None,
        )
        for name, n in sizes.items()
    ]
    model = of_layers(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    start = from_initial(model, "start", *model.initial(0), 1.0)
    executor = BatchedExecutor.on(clients, model, 0, CPU, torch.float32)
    epochs = Objective(local_epochs=2, batch_size=16)
    asked = [Train(name, start.key, epochs) for name in sizes]
    answers = executor.answer(asked, {start.key: start}, 0)
    for name, steps in (("a", 2), ("b", 5), ("c", 5), ("d", 9)):
        counted = Train(name, start.key, Objective(local_steps=steps, batch_size=16))
        alone = executor.loop.answer([counted], {start.key: start}, 0)[counted]
        torch.testing.assert_close(answers[Train(name, start.key, epochs)].mean, alone.mean)
