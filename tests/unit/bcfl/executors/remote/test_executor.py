"""Clients on nodes of a grid: the bits of the loop, and what goes wrong on a network."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl.executors import Node, Payload, Privacy, Reply
from bcfl.methods import RECIPES
from bcfl.rounds import UntrainedWarning
from tests.contract.conftest import everything, federation_of
from tests.fake_grid import grid_of, reaching

ROUNDS = 3
FAMILIES = ["bcfl-mht-8", "wecfl", "ifca-cam", "faacl", "bcfl-g"]
MORE = [
    "fedsoft",
    "feddrift",
    "ocfl-hdbscan",
    "fedgroup",
    "bcfl-g-cam-finetune",
    "wecfl-con-cks",
    "apd",
    "centralised",
]


def both(name, **options):
    """The run in this process, and the same over a grid."""
    federation = federation_of(name, executor="loop")
    grid = grid_of(federation, ROUNDS, **options)
    there = federation.run(ROUNDS, executor=reaching(grid, federation))
    return federation.run(ROUNDS), there, grid


@pytest.mark.parametrize("name", [*FAMILIES, *MORE])
def test_a_run_over_a_grid_has_the_bits_of_the_loop(name):
    here, there, _ = both(name)
    assert everything(here.state) == everything(there.state)
    assert here.metrics() == pytest.approx(there.metrics(), abs=0, nan_ok=True)
    for ours, theirs in zip(here.records, there.records, strict=True):
        assert ours.ledger.failures == theirs.ledger.failures == []
        assert (ours.ledger.bytes_up, ours.ledger.bytes_down, ours.ledger.exchanges) == (
            theirs.ledger.bytes_up,
            theirs.ledger.bytes_down,
            theirs.ledger.exchanges,
        )


def test_nodes_of_a_simulation_add_the_noise_of_the_loop():
    federation = federation_of("ifca", executor="loop", privacy=Privacy())
    there = federation.run(ROUNDS, executor=reaching(grid_of(federation, ROUNDS), federation))
    assert everything(federation.run(ROUNDS).state) == everything(there.state)
    assert everything(there.state) != everything(federation_of("ifca").run(ROUNDS).state)


def test_several_clients_may_share_a_node():
    here, there, grid = both("bcfl-mh-3", nodes=2)
    assert len(grid.sites) == 2
    assert everything(here.state) == everything(there.state)


def test_a_client_gets_one_message_per_exchange():
    _, there, grid = both("bcfl-mht-8")
    exchanges = sum(record.ledger.exchanges for record in there.records)
    training = [(node, json.loads(p.text)["round"]) for node, p in grid.of("train")]
    assert len(training) == len(set(training)) == ROUNDS * len(grid.sites)
    assert len(grid.of("score")) >= (exchanges - ROUNDS) * len(grid.sites)


def test_models_that_a_client_was_just_sent_are_not_sent_again():
    _, _, grid = both("bcfl-g")
    scored = {node: payload for node, payload in grid.of("score") if payload.arrays}
    assert scored
    started = [payload for _, payload in grid.of("train")]
    assert all(not payload.arrays for payload in started)
    assert all(json.loads(payload.text)["arrays"] for payload in started)


@pytest.mark.parametrize("name", ["apd", "fedweit"])
def test_what_a_client_trained_of_its_own_is_not_sent_back(name):
    _, there, grid = both(name)
    own = [block.name for block in there.model.blocks if block.scope == "client"]
    contents = [(json.loads(payload.text), payload.arrays) for *_, payload in grid.pushed]
    rounds = {
        content["round"]
        for content, arrays in contents
        for block in content.get("blocks", {}).values()
        if block["name"] in own and block["mean"] in arrays
    }
    assert rounds == {0}


@pytest.mark.parametrize(("name", "messages"), [("bcfl-g", 2 * ROUNDS), ("apd", 2 * ROUNDS - 1)])
def test_a_node_that_lost_its_models_is_sent_them_once_more(name, messages):
    federation = federation_of(name, executor="loop")
    grid = grid_of(federation, ROUNDS)

    def forgetful(node, purpose, reply):
        grid.kept[node].clear()
        return [reply]

    grid.altered = forgetful
    there = federation.run(ROUNDS, executor=reaching(grid, federation))
    assert everything(federation.run(ROUNDS).state) == everything(there.state)
    assert not any(record.ledger.failures for record in there.records)
    assert len(grid.of("train")) == messages * len(grid.sites)


def answers_changed(change):
    """Replies of node 1 with other JSON or other arrays."""

    def altered(node, purpose, reply):
        if node != 1 or purpose == "greet":
            return [reply]
        return [replace(reply, payload=change(reply.payload))]

    return altered


def arrays_changed(change):
    return answers_changed(
        lambda payload: Payload(payload.text, {n: change(a) for n, a in payload.arrays.items()})
    )


def text_changed(change):
    return answers_changed(lambda payload: Payload(change(payload.text), payload.arrays))


def poisoned(array):
    return np.full_like(array, math.nan) if array.dtype.kind == "f" else array


LIES = {
    "NaN": arrays_changed(poisoned),
    "wrong shape": arrays_changed(lambda a: np.concatenate([a.reshape(-1)] * 2)),
    "huge arrays": arrays_changed(lambda a: np.broadcast_to(a.dtype.type(1), (2**59,))),
    "wrong type of number": arrays_changed(lambda a: a.astype(np.float16)),
    "text for numbers": arrays_changed(lambda a: a.astype("U8")),
    "missing arrays": answers_changed(lambda payload: Payload(payload.text, {})),
    "no JSON": text_changed(lambda text: "{"),
    "deep JSON": text_changed(lambda text: "[" * 100_000),
    "another format": text_changed(lambda text: text.replace('"format": 1', '"format": 2')),
    "unknown class": text_changed(lambda text: text.replace('"kind": "', '"kind": "os.')),
    "unknown fields": text_changed(lambda text: text.replace('"fields": {', '"fields": {"x": 1, ')),
    "no answers": text_changed(lambda text: json.dumps({"format": 1, "answers": []})),
    "models that do not exist": text_changed(
        lambda text: json.dumps({"format": 1, "unknown": True})
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_client_that_answers_nonsense_is_left_out(lie):
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    grid.altered = LIES[lie]
    there = federation.run(ROUNDS, executor=reaching(grid, federation))
    failures = [text for record in there.records for text in record.ledger.failures]
    assert failures
    assert all(text.startswith("c1: ") and text.endswith("(invalid)") for text in failures)
    assert all(
        torch.isfinite(p.blocks[0].gaussian.mean).all() for p in there.hypotheses.best.clusters
    )


def test_what_a_reply_holds_besides_answers_is_ignored():
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)

    def more(payload):
        content = json.loads(payload.text) | {"round": 99, "models": {"x": []}}
        return Payload(json.dumps(content), {**payload.arrays, "never asked": np.zeros(3)})

    grid.altered = answers_changed(more)
    there = federation.run(ROUNDS, executor=reaching(grid, federation))
    assert everything(federation.run(ROUNDS).state) == everything(there.state)


def test_the_words_of_an_exception_stay_on_the_node(caplog):
    class Broken:
        def answer(self, requests, models, round):
            raise FileNotFoundError("/home/ward 7/patients.npz")

    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    honest = grid.sites[1]
    grid.sites[1] = lambda setup: replace(honest(setup), executor=Broken())
    there = federation.run(ROUNDS, executor=reaching(grid, federation))
    failures = [text for record in there.records for text in record.ledger.failures]
    told = "c1: FileNotFoundError, see the log of its node"
    assert f"{told}, when describing its samples (crashed)" in failures
    assert all(text.startswith(told) for text in failures)
    assert "patients.npz" in caplog.text


def test_so_do_those_of_a_client_whose_training_fails(caplog, monkeypatch):
    def fails(*arguments):
        raise RuntimeError("sample 17 of /data/c1 is broken")

    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    monkeypatch.setattr("bcfl.executors.sequential.loop.train_locally", fails)
    with pytest.raises(ValueError, match="no client could answer") as error:
        federation_of("wecfl", executor="loop", evaluate=False).run(
            ROUNDS, executor=reaching(grid, federation)
        )
    assert "/data" not in str(error.value)
    assert "sample 17 of /data/c1" in caplog.text


def test_replayed_and_duplicate_replies_are_ignored():
    federation = federation_of("bcfl-mht-8", executor="loop")
    grid = grid_of(federation, ROUNDS)
    earlier = []

    def replaying(node, purpose, reply):
        forged = [replace(old, message=reply.message) for old in earlier[-1:]]
        earlier.append(reply)
        return [*earlier[-4:-1], Reply("never sent", reply.payload), reply, *forged]

    grid.altered = replaying
    there = federation.run(ROUNDS, executor=reaching(grid, federation))
    assert everything(federation.run(ROUNDS).state) == everything(there.state)


def test_the_deadline_ends_an_exchange_and_late_replies_are_not_read():
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    executor = reaching(grid, federation, deadline=30.0)
    grid.delays[1] = 20.0
    assert not any(r.ledger.failures for r in federation.run(ROUNDS, executor=executor).records)
    grid.delays[1] = 31.0
    records = federation.run(ROUNDS, executor=executor).records
    failures = [text for record in records for text in record.ledger.failures]
    assert set(failures) == {"c1: no answer within 30 seconds (missing)"}


def test_a_client_may_join_in_a_later_round():
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, 6)
    late = grid.sites.pop(1)

    def joins(state, record):
        if record.round == 4:
            grid.sites[1] = late

    records = federation.run(6, executor=reaching(grid, federation), on_round=joins).records
    present = ["c1" in record.participants for record in records]
    assert present == [False] * 4 + [True] * 2
    assert "c1: client 'c1' is not connected (missing)" in records[0].ledger.failures
    assert records[5].ledger.failures == []


def test_a_client_may_leave_for_good():
    federation = federation_of("bcfl-mht-8", executor="loop")
    grid = grid_of(federation, 6)

    def leaves(state, record):
        if record.round == 2:
            del grid.sites[1]

    run = federation.run(6, executor=reaching(grid, federation), on_round=leaves)
    assert run.records[1].ledger.failures == []
    last = run.records[5].ledger.failures
    assert set(last) == {"c1: client 'c1' is not connected (missing)"}
    assert len(run.records[5].evaluations) == len(grid.sites)


def test_of_two_nodes_with_one_client_the_newer_one_is_asked():
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    grid.sites[100] = grid.sites[1]
    grid.listed = {1: Node(1, since="2026-01-02"), 100: Node(100, since="2026-01-01")}
    federation.run(ROUNDS, executor=reaching(grid, federation))
    assert {node for node, _ in grid.of("train")} == set(range(6))


def test_a_node_is_not_asked_for_a_client_that_it_is_not_registered_for():
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    grid.sites[100] = grid.sites[1]
    grid.listed = {1: Node(1, name="c1"), 100: Node(100, since="9", name="c2")}
    federation.run(ROUNDS, executor=reaching(grid, federation))
    assert {node for node, _ in grid.of("train")} == set(range(6))


def test_a_node_with_another_model_is_not_asked():
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    with pytest.warns(UntrainedWarning, match="c0: client 'c0' is not connected"):
        run = federation.run(1, executor=reaching(grid, federation, digest="another"))
    (record,) = run.records
    assert not record.evaluations
    assert record.participants == ()
    assert {purpose for _, purpose, _ in grid.pushed} == {"greet"}


def test_a_node_that_never_greets_costs_one_wait_a_round():
    federation = federation_of("wecfl", executor="loop")
    grid = grid_of(federation, ROUNDS)
    grid.delays[1] = 1e9
    federation.run(ROUNDS, executor=reaching(grid, federation))
    assert len([node for node, _ in grid.of("greet") if node == 1]) == ROUNDS
    assert grid.clock.now == pytest.approx(ROUNDS * 60, abs=1)


def test_nothing_is_sent_that_is_not_of_the_protocol():
    from bcfl.executors.remote.plain import of_plain, sendable, to_plain

    with pytest.raises(TypeError, match="cannot be sent to clients elsewhere"):
        to_plain(next(iter(RECIPES.values())), {})
    with pytest.raises(ValueError, match="unknown kind"):
        of_plain({"kind": "Popen", "fields": {"args": "true"}}, {})
    assert "Objective" in sendable()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_models_of_a_message_are_put_where_the_node_computes():
    from bcfl.executors.remote.messages import Task, pack_task, unpack_task
    from bcfl.protocol.requests import Score

    federation = federation_of("bcfl-g", executor="loop")
    (cluster, *_) = federation.initial_state().hypotheses.best.clusters
    asked = (Score(client="c0", models=(cluster.key,)),)
    task = Task(client="c0", round=0, requests=asked, models={cluster.key: cluster})
    payload, _ = pack_task("run", task, (), {})
    there, _ = unpack_task(json.loads(payload.text), payload.arrays, torch.device("cuda"))
    for block in there.models[cluster.key].blocks:
        tensors = block.gaussian.mean, block.prior.precision, block.buffers
        assert {tensor.device.type for tensor in tensors} == {"cuda"}
