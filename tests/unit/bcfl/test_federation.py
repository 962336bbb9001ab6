"""Bad input is refused before any work starts, by a message that names it."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Federation, Method, Model, Objective, checkpoint, methods
from bcfl.executors import Privacy
from bcfl.policies import FedAvg, KMeansAssociation, Ranking, WarmUp, candidate
from bcfl.rounds import OutputsWarning, UntrainedWarning
from bcfl.trackers import AdaptiveMultiHypothesis, Consensus, Exact, MultiHypothesis
from tests.recipes import built

ONE = FedAvg(Objective(local_steps=1, batch_size=4))


def data(inputs, targets, name="a"):
    return ClientData.from_arrays(name, (inputs, targets))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"client_fraction": 0.0}, r"client_fraction must lie in \(0, 1\], got 0\.0"),
        ({"client_fraction": 1.5}, r"client_fraction must lie in \(0, 1\], got 1\.5"),
        ({"client_fraction": float("nan")}, "client_fraction must lie .*, got nan"),
        ({"drop_out": -0.1}, r"drop_out must lie between 0 and 1, got -0\.1"),
        ({"drop_out": float("nan")}, "drop_out must lie .*, got nan"),
        ({"device": "tpu"}, "device must be 'auto', .*, got 'tpu'"),
        (
            {"dtype": torch.int64},
            r"dtype must be torch\.float32 or torch\.float64, got torch\.int64",
        ),
        ({"dtype": "float32"}, r"dtype must be torch\.float32 or .*, got 'float32'"),
        ({"dtype": torch.float16}, "dtype must be .*, got torch.float16"),
        (
            {"method": KMeansAssociation(num_clusters=5, objective=Objective())},
            "num_clusters must be at most the number of clients, 4, got 5",
        ),
        ({"clients": []}, "clients must hold at least one client, got none"),
    ],
)
def test_arguments_out_of_range_are_refused(linear, clients, arguments, message):
    with pytest.raises(ValueError, match=message):
        Federation(**{"clients": clients, "model": linear, "method": ONE, **arguments})


def test_cuda_is_refused_where_there_is_none(linear, clients, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device 'cuda' is not available: torch finds no CUDA"):
        Federation(clients, linear, ONE, device="cuda")


def test_client_names_are_distinct(linear, clients):
    with pytest.raises(ValueError, match=r"distinct, got more than one of \['c0'\]"):
        Federation([*clients, clients[0]], linear, ONE)


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        (np.ones((2, 4)), [0, 1], r"'a', view 'train': inputs of shape \(4,\) do not fit .*\(3,\)"),
        (
            np.ones((2, 3)),
            [0, 2],
            "'a', view 'train': targets must be integers from 0 to 1, got 0 to 2",
        ),
        (np.ones((2, 3)), [-1, 0], "targets must be integers from 0 to 1, got -1 to 0"),
        (np.ones((2, 3)), [0.0, 1.0], "targets must be integers from 0 to 1"),
        (np.ones((2, 3)), [0.0, float("nan")], "targets must be finite, got NaN or inf"),
        (np.ones((2, 3)), [[0], [1]], r"targets must be one class per sample, got shape \(2, 1\)"),
    ],
)
def test_clients_that_do_not_fit_the_model_are_refused(linear, inputs, targets, message):
    with pytest.raises(ValueError, match=message):
        Federation([data(inputs, targets)], linear, ONE)


@pytest.mark.parametrize("targets", [np.ones((4, 2)), np.full(4, np.nan)])
def test_regression_targets_fit_the_model(regression, targets):
    with pytest.raises(ValueError, match="'a', view 'train': targets must be"):
        Federation([data(np.ones((4, 3)), targets)], regression, ONE)


def test_a_class_may_be_absent_from_the_training_data(linear):
    only = ClientData.from_arrays(
        "a", (np.ones((4, 3)), np.zeros(4, int)), (np.ones((2, 3)), [1, 1])
    )
    run = Federation([only], linear, ONE).run(2)
    assert np.isfinite(run.records[-1].evaluations["a"].nll)
    assert run.records[-1].evaluations["a"].confusion[1].sum() == 2


@pytest.mark.parametrize("rounds", [0, -1])
def test_at_least_one_round_is_run(linear, clients, rounds):
    with pytest.raises(
        ValueError, match=f"rounds must be a whole number of at least 1, got {rounds}"
    ):
        Federation(clients, linear, ONE).run(rounds)


def test_rounds_are_whole_numbers(linear, clients):
    with pytest.raises(ValueError, match=r"whole number of at least 1, got 2\.5"):
        Federation(clients, linear, ONE).run(2.5)


def test_a_model_with_other_outputs_is_refused_early(clients):
    wide = Model(name="wide", build=lambda: torch.nn.Linear(3, 5), input_shape=(3,), num_outputs=2)
    with pytest.raises(
        ValueError, match=r"must give outputs of shape \(samples, 2\), got \(1, 5\)"
    ):
        Federation(clients, wide, ONE)


class Words(nn.Module):
    """Reads indices below 20."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(20, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.words(x.long()).mean(dim=1))


@pytest.mark.parametrize(
    ("sample", "name", "labels", "words"),
    [
        (0, "fedavg", 0, "model 'Words' does not take samples of shape"),
        (2, "fedavg", 0, r"Model\(Words: .* fails in training, on 3 samples of shape"),
        (2, "bcfl-g", 0, r"Model\(Words: .* fails where its curvature is computed, on 3 samples"),
        (5, "fedavg", 2, r"Model\(Words: .* does not take samples of shape"),
    ],
)
def test_a_network_that_fails_on_samples_to_try_names_their_client(sample, name, labels, words):
    """Those of the client with most training samples."""
    inputs = np.ones((9, 6), dtype=int)
    inputs[sample] = 24
    targets = np.zeros((9, labels) if labels else 9, dtype=int)
    clients = [data(inputs[:8] * 0, targets[:8], "a"), data(inputs, targets, "b")]
    words = rf"^client 'b', view 'train': {words}.*below `num_embeddings` of nn.Embedding, 20; "
    with pytest.raises(ValueError, match=words + r".* to 24"):
        Federation(clients, Words, built(name, num_clusters=1))


def test_outputs_of_samples_to_try_name_their_client(clients):
    model = Model(name="wide", build=lambda: nn.Linear(3, 5), input_shape=(3,), num_outputs=2)
    for network, words in (
        (model, r"got \(1, 5\) for one sample of client 'c3', view 'train'"),
        (nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)), "for one sample of client 'c3', view"),
        (
            lambda: nn.Sequential(nn.Linear(3, 2), nn.Softmax(1)),
            "for each of 3 samples of client 'c3', view 'train', as probabilities do",
        ),
    ):
        with pytest.raises((ValueError, OutputsWarning), match=words):
            Federation(clients, network, ONE)


def test_a_layer_without_curvature_is_refused_early(clients):
    def odd():
        return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.PReLU())

    with pytest.raises(ValueError, match=r"PReLU.*curvature='samples'.*such as ifca, wecfl"):
        Federation(clients, odd, methods.build("bcfl-g"))
    for name, options in (("bcfl-g", {"curvature": "samples"}), ("ifca", {"num_clusters": 2})):
        Federation(clients, odd, methods.build(name, **options))


def test_a_policy_alone_is_tracked_greedily(linear, clients):
    federation = Federation(clients, linear, ONE)
    assert federation.method.policy is ONE
    assert federation.method.name == "custom"


@pytest.mark.parametrize(
    "given", [[(np.ones((2, 3)), [0, 1])], {"a": (np.ones((2, 3)), [0, 1])}, [np.ones((2, 3))]]
)
def test_samples_alone_are_pointed_to_what_makes_clients(linear, given):
    with pytest.raises(TypeError, match=r"make one by ClientData.from_arrays\(name, \(inputs"):
        Federation(given, linear, ONE)


def test_clients_of_other_shapes_are_named(clients):
    other = data(np.ones((9, 5)), [0, 1, 0, 1, 0, 1, 0, 1, 1])
    words = r"one shape, got \(3,\) of 'c3' and \(5,\) of 'a'"
    with pytest.raises(ValueError, match=words):
        Federation([*clients, other], nn.Linear(3, 2), ONE)


@pytest.mark.parametrize("odd", ["c0", "c3"])
@pytest.mark.parametrize(
    ("targets", "kind"), [([0.0, 1.0], "numbers"), ([[0, 1], [1, 0]], "rows of labels")]
)
def test_targets_of_different_kinds_are_named_whichever_client_has_them(
    clients, odd, targets, kind
):
    mixed = [
        data(np.ones((2, 3)), targets, one.client) if one.client == odd else one for one in clients
    ]
    words = rf"targets of all clients must be of one kind, got .*{kind} of '{odd}' \(torch"
    with pytest.raises(ValueError, match=words):
        Federation(mixed, lambda: nn.Linear(3, 2), ONE)


@pytest.mark.parametrize("odd", ["a", "b"])
def test_whole_numbers_are_numbers_where_another_client_has_numbers(odd):
    two = [data(np.ones((2, 3)), [1.5, 2.0] if n == odd else [1, 2], n) for n in ("a", "b")]
    federation = Federation(two, lambda: nn.Linear(3, 1), ONE)
    assert federation.model.likelihood == "gaussian"
    assert federation.clients[0].views["train"].targets.shape == (2, 1)


def test_clients_may_come_from_an_iterator(linear, clients):
    assert Federation(iter(clients), linear, ONE).run(1).clients == ("c0", "c1", "c2", "c3")


def test_every_round_is_reported_as_it_ends(linear, clients):
    seen = []
    run = Federation(clients, linear, ONE).run(
        3, on_round=lambda state, record: seen.append((state.round, record))
    )
    assert [round for round, _ in seen] == [1, 2, 3]
    assert tuple(record for _, record in seen) == run.records


@pytest.mark.parametrize("name", ["bcfl-mh-3", "fedavg"])
@pytest.mark.parametrize("belief_every", [None, 2])
def test_a_run_stops_where_a_callback_returns_true(linear, clients, name, belief_every, tmp_path):
    federation = Federation(clients, linear, built(name, num_clusters=2))
    stopped = federation.run(
        5, on_round=lambda state, _: np.bool_(state.round == 2), belief_every=belief_every
    )
    short = federation.run(2, planned_rounds=5, belief_every=belief_every)
    assert [record.round for record in stopped.records] == [1, 2]
    folders = [
        checkpoint.save(run.state, tmp_path / n) for run, n in ((stopped, "a"), (short, "b"))
    ]
    for file in ("state.json", "tensors.safetensors"):
        first, second = ((folder / file).read_bytes() for folder in folders)
        assert first == second
    whole = federation.run(5, state=stopped.state)
    assert (
        whole.hypotheses.best.clusters[0].key == federation.run(5).hypotheses.best.clusters[0].key
    )


def test_whole_numbers_of_numpy_are_whole_numbers(linear, clients):
    run = Federation(clients, linear, ONE, seed=np.int64(3)).run(np.int64(1))
    same = Federation(clients, linear, ONE, seed=3).run(1)
    assert run.hypotheses.best.clusters[0].key == same.hypotheses.best.clusters[0].key


def test_what_a_callback_returns_otherwise_does_not_stop(linear, clients, tmp_path):
    run = Federation(clients, linear, ONE).run(
        2, on_round=lambda state, _: checkpoint.save(state, tmp_path)
    )
    assert run.state.round == 2


def test_float64_is_used_throughout(linear, clients):
    run = Federation(clients, linear, ONE, dtype=torch.float64).run(1)
    assert run.hypotheses.best.clusters[0].mean(linear).dtype == torch.float64


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Consensus(0), "num_associations must be a whole number of at least 1, got 0"),
        (lambda: MultiHypothesis(0), "max_hypotheses must be a whole number of at least 1, got 0"),
        (lambda: MultiHypothesis(2, -1), "max_per_parent must be .*, got -1"),
        (
            lambda: AdaptiveMultiHypothesis(max_hypotheses=0),
            "max_hypotheses must be a whole number of at least 1, got 0",
        ),
        (lambda: Exact(0), "limit must be a whole number of at least 1, got 0"),
        (
            lambda: Method(policy=ONE, prior_precision=0.0),
            r"prior_precision must be positive and finite.*got 0\.0",
        ),
        (lambda: Method(policy=ONE, prior_precision=float("nan")), "prior_precision .*, got nan"),
        (lambda: Method(policy=ONE, prior_precision=float("inf")), "prior_precision .*, got inf"),
    ],
)
def test_methods_and_trackers_name_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_exact_tracker_refuses_more_than_its_limit(linear, clients):
    from bcfl.policies import LikelihoodAssociation

    method = Method(
        policy=LikelihoodAssociation(
            num_clusters=2, objective=Objective(local_steps=1, batch_size=4)
        ),
        tracker=Exact(limit=15),
    )
    with pytest.raises(ValueError, match=r"16 hypotheses after round 0, limit is 15"):
        Federation(clients, linear, method)
    two_asked = Federation(clients, linear, method, client_fraction=0.5)
    assert len(two_asked.run(1).hypotheses) == 2**2
    for refused in (
        lambda: two_asked.check(2),
        lambda: two_asked.run(2, on_round=lambda state, record: pytest.fail("work was done")),
    ):
        with pytest.raises(ValueError, match=r"16 hypotheses after round 1, limit is 15"):
            refused()


def test_a_warm_up_demands_what_its_policies_demand(linear, clients):
    class Picky(FedAvg):
        def check(self, num_clusters, num_clients, num_participants):
            raise ValueError(f"not with {num_clusters}, {num_clients}, {num_participants}")

    policy = WarmUp(ONE, Picky(Objective()))
    for method in (policy, Picky(Objective()), Method(policy=policy, tracker=Consensus(2))):
        with pytest.raises(ValueError, match="not with 1, 4, 2"):
            Federation(clients, linear, method, client_fraction=0.5)


@pytest.mark.parametrize("method", [object(), FedAvg], ids=["no policy", "class"])
def test_what_is_no_method_is_refused(linear, clients, method):
    with pytest.raises(
        TypeError, match="method must be a method or a policy with `associate`, got"
    ):
        Federation(clients, linear, method)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": methods.ifca}, r"function ifca; call it: methods\.ifca\(num_clusters="),
        ({"method": FedAvg}, r"got the class FedAvg; call it: FedAvg\(objective\)"),
        ({"privacy": Privacy}, r"privacy must be .*, got the class Privacy; call it: Privacy\("),
    ],
)
def test_what_was_not_called_is_refused_with_its_call(linear, clients, arguments, message):
    with pytest.raises(TypeError, match=message):
        Federation(**{"clients": clients, "model": linear, "method": ONE, **arguments})


@pytest.mark.parametrize("method", [ONE, methods.build("fedavg")])
def test_model_and_method_in_each_others_place_are_told(linear, clients, method):
    for model in (linear, lambda: nn.Linear(3, 2)):
        words = r"seem to be swapped.*: Federation\(clients, model, method\)$"
        with pytest.raises(TypeError, match=words):
            Federation(clients, method, model)


def test_a_method_by_its_name_is_pointed_to_its_recipe(linear, clients):
    meant = {
        "bcfl-g": "bcfl-g",
        "wecf": "wecfl",
        "bcfl-mth-8": "bcfl-mht-8",
        "ifca-camm": "ifca-cam",
        "default-4": "bcfl-race-4",
        "ifca+fedavgg": "ifca+fedavg",
    }
    for given, known in meant.items():
        words = f"got '{given}'; by its name: bcfl.methods.build('{known}')"
        with pytest.raises(TypeError, match=f"{re.escape(words)}$"):
            Federation(clients, linear, given)
    with pytest.raises(TypeError, match=r"got 'xyzzy'$"):
        Federation(clients, linear, "xyzzy")


@pytest.mark.parametrize("name", ["wecfl", "fesem-w", "wecfl-cam", "ifca+wecfl"])
def test_layers_that_the_network_lacks_are_refused(linear, clients, name):
    options = methods.applicable(name, {"num_clusters": 2, "clustered_layers": "body"})
    words = r"^clustered_layers .* got 'body' .* are the classifier; choose 'all'$"
    with pytest.raises(ValueError, match=words):
        Federation(clients, linear, methods.build(name, **options))


@pytest.mark.parametrize("threads", [0, -1, "two"])
def test_threads_are_at_least_one(linear, clients, threads):
    with pytest.raises(
        ValueError, match=f"threads must be a whole number of at least 1 or None, got {threads!r}"
    ):
        Federation(clients, linear, ONE, threads=threads)


@pytest.mark.parametrize("seed", ["a", -3, 1.5])
def test_seeds_are_whole_numbers(linear, clients, seed):
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0"):
        Federation(clients, linear, ONE, seed=seed)


def test_threads_are_limited_while_it_runs(linear, clients):
    seen, before = [], torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for threads in (1, None):
            Federation(clients, linear, ONE, threads=threads).run(
                1, on_round=lambda *_: seen.append(torch.get_num_threads())
            )
        assert (seen, torch.get_num_threads()) == ([1, 2], 2)
    finally:
        torch.set_num_threads(before)


def test_other_things_than_states_and_callbacks_are_refused(linear, clients):
    federation = Federation(clients, linear, ONE)
    with pytest.raises(TypeError, match=r"or a Run, got 'odd'; .*experiments\.open\("):
        federation.run(2, state="odd")
    with pytest.raises(TypeError, match="on_round must be a function of state and record, got 3"):
        federation.run(2, on_round=3)
    with pytest.raises(TypeError, match="executor must have `answer`, got 'loop'"):
        federation.run(2, executor="loop")
    with pytest.raises(ValueError, match=r"belief_every must be a whole number .*, got 1\.5"):
        federation.run(2, belief_every=1.5)
    with pytest.raises(TypeError, match="client_fraction must be a number, got '0"):
        Federation(clients, linear, ONE, client_fraction="0.5")
    with pytest.raises(TypeError, match=r"privacy must be a .*Privacy or None, got 1"):
        Federation(clients, linear, ONE, privacy=1.0)
    with pytest.raises(TypeError, match=r"adaptation must be .* \(x, y\), got a ClientData"):
        federation.run(1).predict_new(clients[0].views["train"].inputs, clients[0])
    with pytest.raises(TypeError, match="true_groups must be a mapping of clients, got 'test'"):
        federation.run(1).metrics("test")


@dataclass(frozen=True)
class Idle:
    """Associates no client."""

    num_clusters: int = 2
    objective: Objective = field(default_factory=Objective)

    def associate(self, hypothesis, context):
        yield from ()
        return Ranking.only(candidate(hypothesis, {}, self.objective))


def test_a_policy_that_associates_no_client_is_told(linear, clients):
    with pytest.warns(UntrainedWarning, match="no client was asked to train in any round"):
        Federation(clients, linear, Idle()).run(1)
