import torch

from bcfl import ClientData, Objective
from bcfl.executors import LoopExecutor
from bcfl.protocol.answers import ClientInfo, Failure
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.evidence import Evidence

CPU = torch.device("cpu")


def test_clients_describe_themselves(linear, clients):
    executor = LoopExecutor.on(clients, linear, 0, CPU, torch.float32)
    answer = executor.answer([Describe("c1")], {}, 0)
    assert answer == {Describe("c1"): ClientInfo({"train": 9, "test": 4}, (3,))}


def test_a_client_that_is_not_here_is_missing(linear, clients, newborn):
    executor = LoopExecutor.on(clients, linear, 0, CPU, torch.float32)
    asked = [Describe("x"), Score(client="x", models=("k",)), Train("x", "k", Objective())]
    answers = executor.answer(asked, {"k": newborn(linear)}, 0)
    assert {a.kind for a in answers.values()} == {"missing"}
    assert all(isinstance(a, Failure) for a in answers.values())


def test_data_take_the_type_of_the_parameters(linear, clients):
    executor = LoopExecutor.on(clients, linear, 0, CPU, torch.float64)
    view = executor.clients["c0"].views["train"]
    assert (view.inputs.dtype, view.targets.dtype) == (torch.float64, torch.int64)


def test_a_training_does_not_depend_on_what_else_is_asked(batch_norm, clients, newborn):
    """Nor on its place among the requests, nor on the other clients that there are."""
    models = {"k": newborn(batch_norm), "l": newborn(batch_norm, 1)}
    objective = Objective(local_steps=4, batch_size=4, curvature="ggn")
    wanted = Train("c2", "k", objective)
    others = [Train(c, key, objective) for c in ("c0", "c1", "c3") for key in models]
    others += [
        Score(client="c2", models=("k", "l")),
        Score(client="c0", models=("l",), statistic=Evidence()),
    ]

    def answer(requests, given):
        executor = LoopExecutor.on(given, batch_norm, 0, CPU, torch.float32)
        return executor.answer(requests, models, 3)[wanted]

    alone = answer([wanted], clients[2:3])
    for requests in ([wanted, *others], [*others, wanted]):
        among = answer(requests, clients)
        assert torch.equal(among.mean, alone.mean)
        assert torch.equal(among.buffers, alone.buffers)
        assert torch.equal(among.curvature, alone.curvature)


def test_a_client_of_one_sample_trains(batch_norm, make_client, newborn):
    request = Train("a", "k", Objective(local_steps=3, batch_size=4, curvature="ggn"))
    executor = LoopExecutor.on([make_client("a", 1)], batch_norm, 0, CPU, torch.float32)
    trained = executor.answer([request], {"k": newborn(batch_norm)}, 0)[request]
    assert trained.num_samples == 1
    assert torch.isfinite(trained.mean).all()


def test_groups_are_kept_for_analysis(linear, make_client):
    executor = LoopExecutor.on([make_client("a", 1, group=3)], linear, 0, CPU, torch.float32)
    assert isinstance(executor.clients["a"], ClientData)
    assert executor.clients["a"].group == 3
