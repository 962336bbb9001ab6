"""A federation whose clients hold their samples themselves, over a grid inside this process."""

import errno
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bcfl import ClientData
from bcfl.analysis import metrics
from bcfl.executors import Node, Privacy
from bcfl.flower import Deployment, DeploymentFolder, read_client, read_privacy
from bcfl.flower.apps import secret_of, serve
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Train
from bcfl.rounds import CheckpointError
from tests.contract.conftest import MODEL, clients_of, everything, federation_of, recipe_of
from tests.fake_grid import FakeGrid, reaching

ROUNDS = 3
FAMILIES = ["bcfl-mht-8", "wecfl", "ifca-cam", "faacl", "bcfl-g", "apd"]
SIZES = (8, 3, 5, 9)
CLIENTS = {data.client: data for data in clients_of(SIZES)}


def plan_of(name, folder, **options):
    settings = {"rounds": ROUNDS, "clients": tuple(CLIENTS), "method": recipe_of(name)}
    return Deployment(model=MODEL, folder=folder, **settings | options)


def grid_of(plan, **options):
    nodes = {}
    for number, data in enumerate(CLIENTS.values()):
        site = plan.site(data, **options)
        nodes[number] = lambda setup, site=site: site
    return FakeGrid(nodes)


def started(plan, grid=None, on_round=lambda record, row: None, **options):
    grid = grid or grid_of(plan)
    executor = reaching(grid, SimpleNamespace(model=plan.network), **options)
    return plan.run(executor, on_round), grid


def loop(name, rounds=ROUNDS):
    return federation_of(name, SIZES, executor="loop").run(rounds)


@pytest.mark.parametrize("name", FAMILIES)
def test_clients_that_read_their_own_samples_give_the_bits_of_the_loop(name, tmp_path):
    run, _ = started(plan_of(name, tmp_path))
    assert everything(run.state) == everything(loop(name).state)
    rows = DeploymentFolder(tmp_path, name).rows()
    assert [row["round"] for row in rows] == [1, 2, 3]
    assert rows[0]["connected"] == ["c0", "c1", "c2", "c3"]
    assert all(row["failures"] == [] and row["traffic"]["bytes_down"] > 0 for row in rows)


def test_nodes_are_not_asked_for_beliefs_where_none_are_wanted(tmp_path):
    found, _ = started(plan_of("wecfl", tmp_path, beliefs=False))
    assert all(record.belief_ledger is None for record in found.records)
    assert found.hypotheses.best.belief is None


def test_a_run_goes_on_from_its_newest_checkpoint_to_the_same_bits(tmp_path):
    plan = plan_of("bcfl-mht-8", tmp_path, rounds=5, checkpoint_every=2)

    class Fallen(Exception):
        pass

    def falls(record, row):
        if record.round == 3:
            raise Fallen

    with pytest.raises(Fallen):
        started(plan, on_round=falls)
    resumed, _ = started(plan)
    assert [record.round for record in resumed.records] == [3, 4, 5]
    assert [row["round"] for row in DeploymentFolder(tmp_path, "bcfl-mht-8").rows()] == [
        *range(1, 6)
    ]
    whole, _ = started(plan_of("bcfl-mht-8", tmp_path / "whole", rounds=5, checkpoint_every=2))
    assert everything(resumed.state) == everything(whole.state)
    again, grid = started(plan)
    assert again.records == ()
    assert grid.pushed == []


def test_a_full_disk_ends_the_run_and_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    from bcfl.rounds import checkpoint

    plan = plan_of("wecfl", tmp_path)
    honest = checkpoint._write

    def full(path, content):
        if "round-000002" in str(path):
            path.write_bytes(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        honest(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_write", full)
        with pytest.raises(OSError, match="No space left"):
            started(plan)
    resumed, _ = started(plan)
    assert [record.round for record in resumed.records] == [2, 3]
    assert everything(resumed.state) == everything(loop("wecfl").state)


def test_rounds_of_a_stream_have_their_time_step(tmp_path):
    run, _ = started(plan_of("wecfl", tmp_path, num_steps=2))
    assert [row["time_step"] for row in DeploymentFolder(tmp_path, "wecfl").rows()] == [0, 0, 1]
    assert run.groups == dict.fromkeys(CLIENTS)


def test_the_run_can_ask_its_clients_for_more(tmp_path):
    run, _ = started(plan_of("bcfl-g", tmp_path))
    x = CLIENTS["c0"].views["test"]
    assert run.predict("c0", x.inputs).ood_score is not None
    assert run.predict_new(x.inputs, (x.inputs[:2], x.targets[:2])).mean.shape == (5, 2)


def test_a_round_waits_for_clients_and_begins_without_late_ones(tmp_path):
    plan = plan_of("wecfl", tmp_path, wait=30.0)
    grid = grid_of(plan)
    late = grid.sites.pop(3)
    sleep = grid.clock.sleep

    def arrives(seconds):
        sleep(seconds)
        if grid.clock.now > 40:
            grid.sites.setdefault(3, late)

    started(plan, grid, sleep=arrives)
    rows = DeploymentFolder(tmp_path, "wecfl").rows()
    assert [len(row["connected"]) for row in rows] == [3, 4, 4]
    assert "c3: client 'c3' is not connected (missing)" in rows[0]["failures"]


def test_clients_that_have_not_described_themselves_are_tested(tmp_path):
    plan = plan_of("wecfl", tmp_path, rounds=2, client_fraction=0.5)
    run, _ = started(plan)
    described = [set(record.num_training) for record in run.records]
    assert described[0] == set(run.records[0].participants)
    for record, row in zip(run.records, DeploymentFolder(tmp_path, "wecfl").rows(), strict=True):
        assert set(record.evaluations) == set(CLIENTS)
        known = {c: len(CLIENTS[c].views["train"]) for c in record.num_training}
        assert record.num_training == known
        expected = metrics.macro_f1_per_client(record.evaluations, known)
        assert row["weighted_f1"] == pytest.approx(expected)


def test_a_round_does_not_begin_without_any_client(tmp_path):
    plan = plan_of("wecfl", tmp_path, min_clients=2, wait=5.0)
    grid = grid_of(plan)
    sites, grid.sites = grid.sites, {}
    sleep = grid.clock.sleep

    def arrives(seconds):
        sleep(seconds)
        if grid.clock.now > 100:
            grid.sites = dict(list(sites.items())[:2])

    started(plan, grid, sleep=arrives)
    assert [len(row["connected"]) for row in DeploymentFolder(tmp_path, "wecfl").rows()] == [
        2,
        2,
        2,
    ]


def test_a_node_that_said_nothing_is_greeted_again_while_a_round_waits(tmp_path):
    plan = plan_of("wecfl", tmp_path, wait=1e6, rounds=1)
    grid = grid_of(plan)
    grid.delays[1] = 1e9
    sleep = grid.clock.sleep

    def recovers(seconds):
        sleep(seconds)
        if grid.clock.now > 100:
            grid.delays.clear()

    started(plan, grid, sleep=recovers)
    assert DeploymentFolder(tmp_path, "wecfl").rows()[0]["connected"] == sorted(CLIENTS)
    assert grid.clock.now < 200


def test_a_node_that_came_back_is_greeted_again(tmp_path):
    plan = plan_of("wecfl", tmp_path)
    grid = grid_of(plan)
    grid.listed = {1: Node(1, since="1")}

    def returns(record, row):
        grid.listed = {1: Node(1, since=str(record.round + 1))}

    started(plan, grid, returns)
    assert len([node for node, _ in grid.of("greet") if node == 1]) == ROUNDS


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clients": ("a", "a")}, "distinct names"),
        ({"clients": ()}, "at least one"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"min_clients": 5}, "between 1 and the 4 clients"),
        ({"client_fraction": 0.0}, r"client_fraction must lie in \(0, 1\]"),
        ({"method": recipe_of("centralised")}, "pools the samples of clients"),
        ({"method": recipe_of("ifca"), "clients": ("a",)}, "num_clusters"),
    ],
)
def test_what_cannot_be_deployed_is_refused(options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        plan_of("ifca", tmp_path, **options)


def test_a_node_with_another_client_is_refused_by_itself(tmp_path):
    views = CLIENTS["c0"].views
    with pytest.raises(ValueError, match="client must be one of"):
        plan_of("ifca", tmp_path).site(ClientData("zoe", views))


def test_a_folder_of_other_clients_is_not_gone_on_with(tmp_path):
    started(plan_of("wecfl", tmp_path))
    fewer = plan_of("wecfl", tmp_path, clients=("c0", "c1", "c2"))
    with pytest.raises(CheckpointError, match="give a new folder"):
        started(fewer, FakeGrid({}))


def test_nodes_are_told_the_run_configuration(tmp_path):
    plan = plan_of("wecfl", tmp_path)
    told = []
    grid = grid_of(plan)
    grid.sites = {
        node: lambda setup, site=site: told.append(setup) or site("")
        for node, site in grid.sites.items()
    }
    serve(grid, plan, {"rounds": 3, "a": "b"})
    assert {json.loads(setup)["rounds"] for setup in told} == {3}


def test_samples_are_read_from_a_file_or_a_folder(tmp_path):
    random = np.random.default_rng(0)
    arrays = {
        f"{letter}_{kind}": random.normal(size=(4, 3)) if letter == "x" else np.arange(4) % 2
        for kind in ("train", "test", "train_1")
        for letter in "xy"
    }
    np.savez(tmp_path / "data.npz", **arrays)
    (tmp_path / "data").mkdir()
    for name, array in arrays.items():
        np.save(tmp_path / "data" / f"{name}.npy", array)
    for path in (tmp_path / "data.npz", tmp_path / "data"):
        data = read_client({"client": "anna", "data": str(path)})
        assert data.client == "anna"
        assert data.num_samples == {"train": 4, "test": 4, "train:1": 4}
    with pytest.raises(ValueError, match="configuration must hold 'data'"):
        read_client({"client": "anna"})
    np.savez(tmp_path / "half.npz", x_train=arrays["x_train"])
    with pytest.raises(ValueError, match="must hold x_train and y_train"):
        read_client({"client": "anna", "data": str(tmp_path / "half.npz")})


def test_nodes_noise_by_secrets_of_their_own_and_releases_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("bcfl.flower.deployment.check_accountant", lambda: None)
    monkeypatch.setattr(Privacy, "epsilon", lambda self, releases: 10.0 * releases)
    plans = {name: plan_of("ifca", tmp_path / name, privacy=Privacy()) for name in "abcd"}
    secrets = {"a": b"one", "b": b"one", "c": None, "d": None}
    first, again, *others = (
        started(plans[name], grid_of(plans[name], secret=secrets[name]))[0] for name in plans
    )
    assert everything(first.state) == everything(again.state)
    assert len({repr(everything(run.state)) for run in (first, *others)}) == 3
    last = DeploymentFolder(tmp_path / "a", "ifca").rows()[-1]
    assert last["releases"] == first.state.most_releases >= 3 * ROUNDS
    assert last["epsilon"] == 10 * last["releases"]


def noise_of(plan, shift=0.0, **changes):
    """The noise that a client adds to the update from a model of some numbers."""
    data = replace(CLIENTS["c0"], **changes)
    mean, buffers = plan.network.initial(0)
    model = from_initial(plan.network, "key", mean + shift, buffers, 1.0)
    request, answers = Train("c0", "key", plan.method.policy.objective), []
    for privacy in (plan.privacy, replace(plan.privacy, noise_multiplier=1e-9)):
        site = replace(plan, privacy=privacy).site(data, secret=b"one")
        answers.append(site.executor.answer([request], {"key": model}, 0)[request].mean)
    return answers[0] - answers[1]


def test_noise_is_that_of_the_same_question_about_the_same_samples_alone(tmp_path):
    plan = plan_of("ifca", tmp_path, privacy=Privacy())
    first = noise_of(plan)
    fewer = {name: view.take(torch.arange(2)) for name, view in CLIENTS["c0"].views.items()}
    torch.testing.assert_close(first, noise_of(plan), rtol=0, atol=0)
    for other in (noise_of(plan, 1e-3), noise_of(plan, views=fewer)):
        assert float((first - other).abs().mean()) > 0.5


def test_a_private_node_needs_a_secret(tmp_path):
    (tmp_path / "short").write_bytes(b"0" * 31)
    (tmp_path / "key").write_bytes(b"0" * 32)
    assert len(secret_of({"secret": str(tmp_path / "key")})) == 32
    for options, words in (({}, "must hold 'secret'"), ({"secret": tmp_path / "short"}, "got 31")):
        with pytest.raises(ValueError, match=words):
            secret_of(options)


def test_privacy_is_read_from_its_table():
    assert read_privacy({"rounds": 3}) is None
    assert read_privacy({"privacy.clip": 2.0}) == Privacy(clip=2.0)
    with pytest.raises(ValueError, match=r"\[privacy\] has no key 'epsilon'; it has clip, noise"):
        read_privacy({"privacy.epsilon": 1.0})


def test_privacy_of_curvatures_is_refused(tmp_path):
    with pytest.raises(ValueError, match="privacy: curvature 'ggn' has no stated sensitivity"):
        plan_of("bcfl-g", tmp_path, privacy=Privacy())
