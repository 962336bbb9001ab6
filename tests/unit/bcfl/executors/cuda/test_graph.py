"""Recorded steps, rehearsed on a CPU: a recorder that calls instead of replaying."""

from dataclasses import replace

import pytest
import torch

from bcfl import Objective
from bcfl.executors import ExecutorConfig, select_executor
from bcfl.executors.cuda.graph import (
    MOST_RECORDINGS,
    GraphDescent,
    eager,
    graph_executor,
    padded_count,
)
from bcfl.executors.stacked.batched import network_of
from bcfl.executors.stacked.descent import StackedTraining, descend
from bcfl.executors.stacked.samples import Samples
from bcfl.protocol.regularizers import Contrast, Proximal
from experiments.models import fashion_cnn, mlp

CPU = torch.device("cpu")
OBJECTIVE = Objective(local_steps=3, batch_size=4, learning_rate=0.1, momentum=0.5)


def drawn(model, count, seed=0, pull=False):
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(20, *model.input_shape, generator=random)
    targets = torch.randint(0, model.num_outputs, (20,), generator=random)
    starts = [model.initial(seed + index) for index in range(count)]
    parameters = torch.stack([mean for mean, _ in starts])
    return StackedTraining(
        network=network_of(model),
        model=model,
        samples=Samples(inputs, targets, {}, {}),
        parameters=parameters,
        buffers=torch.stack([buffers for _, buffers in starts]),
        pull=torch.rand(parameters.shape, generator=random) if pull else None,
        rows=torch.randint(0, 20, (3, count, 4), generator=random),
        shares=torch.full((count, 4), 0.25),
    )


class Recorder:
    """Counts what is recorded and what is replayed."""

    def __init__(self):
        self.recorded = self.replayed = 0

    def __call__(self, work):
        self.recorded += 1

        def replay():
            self.replayed += 1
            work()

        return replay


@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize(
    "model", [mlp(5, 4, 3), fashion_cnn(norm="batch")], ids=["mlp", "batch norm"]
)
def test_replayed_steps_are_the_steps(model, pull):
    descent, shared = GraphDescent(eager), drawn(model, 5, pull=pull)
    for seed in (0, 7, 0):
        problems = replace(drawn(model, 5, seed, pull), samples=shared.samples)
        wanted, found = descend(problems, OBJECTIVE), descent(problems, OBJECTIVE)
        for one, other in zip(wanted, found, strict=True):
            assert one.shape == other.shape
            assert (one - other).norm() <= 1e-6 * one.norm()
        assert not any(torch.equal(one, problems.parameters) for one in found)


def test_references_of_regularisers_are_replaced_in_a_recording():
    model, recorder = mlp(5, 4, 3), Recorder()
    objective = replace(OBJECTIVE, regularizers=(Contrast(weight=5.0), Proximal()))
    descent, shared = GraphDescent(recorder), drawn(model, 5)
    for seed in (1, 2, 1):
        problems = drawn(model, 5, seed)
        others = problems.parameters.flip(0).unsqueeze(1)
        problems = replace(problems, references=[others, others[:, :0]], samples=shared.samples)
        wanted, found = descend(problems, objective)[0], descent(problems, objective)[0]
        assert (wanted - found).norm() <= 1e-6 * wanted.norm()
        assert not torch.allclose(
            wanted, descend(replace(problems, references=[]), OBJECTIVE)[0], rtol=1e-3
        )
    assert recorder.recorded == 1


def test_a_step_is_recorded_once_for_numbers_that_pad_to_one():
    model, recorder = mlp(5, 4, 3), Recorder()
    descent, first = GraphDescent(recorder), drawn(model, 8)
    for count in (5, 8, 6, 5):
        problems = replace(drawn(model, count), samples=first.samples)
        assert len(descent(problems, OBJECTIVE)[0]) == count
    assert (recorder.recorded, recorder.replayed) == (1, 4 * 3)
    descent(first, replace(OBJECTIVE, learning_rate=0.2))
    assert recorder.recorded == 2


def test_the_recording_unused_for_longest_goes_first():
    model, recorder = mlp(5, 3), Recorder()
    descent, problems = GraphDescent(recorder), drawn(model, 4)
    rates = [0.01 * (1 + index) for index in range(MOST_RECORDINGS + 1)]
    for rate in (*rates[:-1], rates[0], rates[-1], rates[0]):
        descent(problems, replace(OBJECTIVE, learning_rate=rate))
    assert recorder.recorded == len(rates)
    descent(problems, replace(OBJECTIVE, learning_rate=rates[1]))
    assert recorder.recorded == len(rates) + 1
    assert len(descent.recordings) == MOST_RECORDINGS


def test_recordings_that_do_not_fit_go_but_for_the_last():
    model, recorder = mlp(5, 3), Recorder()
    problems = drawn(model, 4, pull=True)
    free = GraphDescent(Recorder())
    free(problems, OBJECTIVE)
    (one,) = free.recordings.values()
    assert one.nbytes > 5 * problems.parameters.nbytes
    descent = GraphDescent(recorder, memory=2 * one.nbytes)
    for rate, recorded in ((0.1, 1), (0.2, 2), (0.1, 2), (0.3, 3), (0.1, 3), (0.2, 4)):
        descent(problems, replace(OBJECTIVE, learning_rate=rate))
        assert (recorder.recorded, len(descent.recordings)) == (recorded, min(recorded, 2))
    small = GraphDescent(Recorder(), memory=1)
    small(problems, OBJECTIVE)
    assert len(small.recordings) == 1


@pytest.mark.parametrize("count", [1, 3, 40, 41, 240, 1000])
def test_few_problems_are_added(count):
    padded = padded_count(count)
    assert count <= padded <= max(count + 3, 1.125 * count)
    assert padded_count(padded) == padded


def test_a_graph_needs_a_gpu(clients, linear):
    for build in (
        lambda: graph_executor(clients, linear, 0, CPU, torch.float32),
        lambda: select_executor(ExecutorConfig("graph"), linear, CPU),
    ):
        with pytest.raises(ValueError, match="'graph' needs a CUDA device, got 'cpu'"):
            build()


def test_a_gpu_is_given_recorded_steps(linear):
    assert select_executor(ExecutorConfig(), linear, torch.device("cuda", 0))[0] == "graph"
