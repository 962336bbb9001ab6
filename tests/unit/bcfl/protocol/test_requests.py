from dataclasses import fields, replace

import numpy as np
import pytest

from bcfl import Objective, drive
from bcfl.protocol.requests import (
    Describe,
    Exchange,
    ProtocolError,
    Score,
    Train,
    checked_exchange,
    loss_matrix,
    together,
)
from bcfl.protocol.statistics.best_counts import BestModels
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.loss import LossSum


def asking(*exchanges, result):
    """Ask `exchanges` one after the other, then return what came back and the result."""
    got = []
    for clients in exchanges:
        requests = tuple(Describe(client) for client in clients)
        replies = yield Exchange(requests, {f"key of {clients[0]}": clients[0]})
        got.append({request.client: reply for request, reply in replies.items()})
    return got, result


def answered(steps):
    """Answer every request by its client; returns the clients and models of each exchange."""
    result, exchanges = drive(steps, lambda r: f"re {r.client}", return_exchanges=True)
    return [
        (tuple(request.client for request in exchange.requests), set(exchange.models))
        for exchange in exchanges
    ], result


def test_generators_that_end_at_different_times_run_in_lockstep():
    steps = together(
        [
            asking(["a1"], ["a2"], ["a3"], result="A"),
            asking(result="B"),
            asking(["c1", "a1"], result="C"),
        ]
    )
    asked, results = answered(steps)
    assert asked == [
        (("a1", "c1", "a1"), {"key of a1", "key of c1"}),
        (("a2",), {"key of a2"}),
        (("a3",), {"key of a3"}),
    ]
    assert [result for _, result in results] == ["A", "B", "C"]
    assert [sorted(replies) for replies in results[0][0]] == [["a1", "c1"], ["a2"], ["a3"]]
    assert results[2][0] == [{"a1": "re a1", "c1": "re c1"}]


def test_generators_that_ask_nothing_end_without_an_exchange():
    assert drive(together([asking(result=1), asking(result=2)])) == [([], 1), ([], 2)]
    assert drive(together([])) == []


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("local_steps", 0, "at least 1"),
        ("batch_size", 0, "at least 1"),
        ("local_steps", 2.5, "a whole number of at least 1"),
        ("learning_rate", -0.1, "at least 0"),
        ("learning_rate", float("nan"), "finite"),
        ("momentum", float("inf"), "below 1"),
        ("weight_decay", -1.0, "at least 0"),
        ("prior_weight", -1.0, "at least 0"),
        ("curvature_samples", 0, "at least 1 or None"),
        ("curvature", "hessian", "samples, uniform, ggn"),
    ],
)
def test_an_objective_names_what_is_wrong(name, value, allowed):
    with pytest.raises(ValueError, match=f"{name} must be .*{allowed}.*, got {value!r}"):
        Objective(**{name: value})


def test_only_vector_curvatures_are_reported_as_vectors():
    reporting = {kind: Objective(curvature=kind).reports_precision for kind in ("samples", "ggn")}
    assert reporting == {"samples": False, "ggn": True}


def test_requests_are_equal_by_value():
    objective = Objective()
    assert Train("a", "k", objective) == Train("a", "k", replace(objective))
    assert (
        len(
            {
                Score(client="a", models=("k",)),
                Score(client="a", models=("k",)),
                Score(client="a", models=("k",), samples=3),
            }
        )
        == 2
    )
    assert Score(client="a", models=("k",), statistic=BestModels()).parts() == (
        Score(client="a", models=("k",), statistic=BestModels()),
    )


def test_losses_become_a_matrix_with_a_column_for_each_key():
    scores = {
        "a": {"x": LossSum(1.0, 0.0, 4), "y": LossSum(2.0, 0.0, 4)},
        "b": {"x": LossSum(3.0, 0.0, 5), "y": LossSum(4.0, 0.0, 5)},
    }
    losses, counts = loss_matrix(["a", "b"], {c: ["y", "x", "x"] for c in "ab"}, scores)
    assert losses.tolist() == [[2, 1, 1], [4, 3, 3]]
    assert counts.tolist() == [4, 5]
    assert counts.dtype == np.float64


def test_parts_of_a_score_keep_all_that_is_not_its_models():
    asked = Score(
        client="c",
        models=("a", "b"),
        statistic=Evidence(),
        view="v",
        samples=3,
        held=("a",),
        reported=False,
    )
    unchanged = [one.name for one in fields(Score) if getattr(asked, one.name) == one.default]
    assert not unchanged
    assert asked.parts() == tuple(replace(asked, models=(key,)) for key in ("a", "b"))
    assert asked.topic == replace(asked, models=())
    assert asked.topic.joined(asked.parts()) == asked


def test_keys_in_a_list_are_those_in_a_tuple():
    assert Score(client="a", models=["k", "l"]) == Score(client="a", models=("k", "l"))
    assert hash(Score(client="a", models=["k"])) == hash(Score(client="a", models=("k",)))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            Score(client="a", models=(0, 1)),
            r"models of a Score must be a tuple of keys, .*\(0, 1\)",
        ),
        (Score(client="a", models=("key", 1)), r"must be a tuple of keys, .*\('key', 1\)"),
        (
            Score(client="a", models="key"),
            "models of a Score must be a tuple of keys, .* got 'key'",
        ),
        (Train("a", 0, Objective()), "start of a Train must be the key of a model, .* got 0"),
    ],
)
def test_models_are_named_by_their_keys(request_, message):
    with pytest.raises(ProtocolError, match=message):
        checked_exchange(Exchange((request_,), {}))
