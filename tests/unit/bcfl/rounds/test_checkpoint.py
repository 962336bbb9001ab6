"""Checkpoints keep bits and identities, and say where they are damaged."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import ClientData, Federation, HypothesisSet, Objective
from bcfl.methods import build
from bcfl.rounds.checkpoint import CheckpointError, load, newest, round_of, save
from tests.recipes import built


@pytest.fixture
def federation(clients, batch_norm, shared_body):
    def of(name="bcfl-mh-3", model=batch_norm, **arguments):
        settings = dict(
            num_clusters=2, objective=Objective(local_steps=2, batch_size=4), temperature=4.0
        )
        return Federation(clients, model, built(name, **settings), **arguments)

    return of


def tensors(state):
    for hypothesis in state.hypotheses.competing:
        yield torch.from_numpy(hypothesis.association.labels.copy())
        yield torch.from_numpy(hypothesis.association.serving.copy())
        for posterior in hypothesis.clusters:
            for block in posterior.blocks:
                for gaussian in (block.gaussian, block.base, block.prior):
                    yield from (gaussian.mean, gaussian.precision)
                yield block.buffers


def identities(state):
    """Which objects are one and the same, as numbers of first occurrence."""
    seen = {}
    return [
        seen.setdefault(id(value), len(seen))
        for hypothesis in state.hypotheses.competing
        for posterior in hypothesis.clusters
        for value in (
            posterior,
            *posterior.blocks,
            *(g for b in posterior.blocks for g in (b.gaussian, b.base, b.prior)),
        )
    ]


def assert_same(state, other):
    assert state.round == other.round
    assert identities(state) == identities(other)
    for mine, yours in zip(tensors(state), tensors(other), strict=True):
        assert (mine.dtype, mine.shape) == (yours.dtype, yours.shape)
        assert mine.numpy().tobytes() == yours.numpy().tobytes()
    assert state.hypotheses.log_weights.tolist() == other.hypotheses.log_weights.tolist()
    assert [h.parents for h in state.hypotheses] == [h.parents for h in other.hypotheses]
    assert [p.key for h in state.hypotheses for p in h.clusters] == [
        p.key for h in other.hypotheses for p in h.clusters
    ]
    assert dict(state.client_info) == dict(other.client_info)
    assert dict(state.scores) == dict(other.scores)
    assert state.cached == other.cached
    assert len(state.history) == len(other.history)
    for old, new in zip(state.history, other.history, strict=True):
        assert old.log_weights.tolist() == new.log_weights.tolist()
        assert (old.round, old.parents) == (new.round, new.parents)
        assert old.continues == new.continues
        for mine, yours in zip(old.associations, new.associations, strict=True):
            assert mine.serving.tolist() == yours.serving.tolist()


@pytest.mark.parametrize(
    "name", ["fedavg", "wecfl", "wecfl-con-para", "bcfl-c-3", "bcfl-mh-3", "bcfl-mht-4"]
)
def test_a_state_comes_back_bit_for_bit(federation, tmp_path, name):
    state = federation(name).run(3).state
    assert_same(load(save(state, tmp_path)), state)


def test_what_clusters_continue_comes_back(federation, tmp_path):
    state = federation("wecfl").run(2).state
    first, *others = state.hypotheses.hypotheses
    kept = replace(state.hypotheses, hypotheses=(replace(first, continues=(1, -1)), *others))
    last = replace(state.history[-1], continues=((1, -1),))
    changed = replace(state, hypotheses=kept, history=(*state.history[:-1], last))
    found = load(save(changed, tmp_path))
    assert found.hypotheses.best.continues == (1, -1)
    assert [snapshot.continues for snapshot in found.history] == [(), ((1, -1),)]


@pytest.mark.parametrize("name", ["wecfl", "bcfl-c-3", "bcfl-mh-3", "bcfl-mht-4", "bcfl-g-w"])
def test_going_on_from_a_checkpoint_gives_the_same_bits(federation, tmp_path, name):
    whole = federation(name, client_fraction=0.75).run(4).state
    half = federation(name, client_fraction=0.75).run(2).state
    resumed = federation(name, client_fraction=0.75).run(4, state=load(save(half, tmp_path))).state
    assert_same(resumed, whole)


def test_what_clients_keep_is_not_sent_again_after_a_checkpoint(linear, clients, tmp_path):
    def again(rounds, state=None):
        method = build("ewc", objective=Objective(local_steps=3, batch_size=4))
        streams = [
            ClientData(c.client, {**c.views, "train:1": c.views["train"]}, c.group) for c in clients
        ]
        run = Federation(streams, linear, method, seed=3)
        return run.run(rounds, planned_rounds=6, state=state)

    whole, half = again(6), again(5)
    assert half.state.cached
    resumed = again(6, load(save(half.state, tmp_path)))
    assert_same(resumed.state, whole.state)
    sent = [run.records[-1].ledger.bytes_down for run in (whole, resumed)]
    assert sent[0] == sent[1] == whole.records[0].ledger.bytes_down


def test_global_blocks_stay_shared(federation, tmp_path, shared_body):
    state = load(save(federation("bcfl-mh-3", shared_body).run(2).state, tmp_path))
    for hypothesis in state.hypotheses:
        first, second = hypothesis.clusters
        assert first.blocks[1] is second.blocks[1]


def test_the_state_before_the_first_round_can_be_saved(federation, tmp_path):
    state = federation().initial_state()
    assert_same(load(save(state, tmp_path)), state)


def test_an_unknown_mass_stays_unknown(federation, tmp_path):
    state = federation().run(1).state
    unknown = replace(state, hypotheses=replace(state.hypotheses, log_captured_mass=float("nan")))
    assert np.isnan(load(save(unknown, tmp_path)).hypotheses.log_captured_mass)


def test_the_two_newest_are_kept(federation, tmp_path):
    assert newest(tmp_path) is None
    assert newest(tmp_path / "not there") is None
    state = federation().initial_state()
    for rounds in (1, 2, 3):
        state = federation().run(rounds, state=state).state
        assert save(state, tmp_path) == newest(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["round-000002", "round-000003"]


def test_what_a_kill_left_behind_is_written_over(federation, tmp_path):
    state = federation().run(1).state
    partial = tmp_path / ".round-000001.partial"
    partial.mkdir()
    (partial / "state.json").write_text("{")
    assert newest(tmp_path) is None
    assert_same(load(save(state, tmp_path)), state)
    assert not partial.exists()


def test_saving_twice_gives_the_same_files(federation, tmp_path):
    state = federation().run(1).state
    files = [{f.name: f.read_bytes() for f in save(state, tmp_path).iterdir()} for _ in range(2)]
    assert files[0] == files[1]
    assert set(files[0]) == {"state.json", "tensors.safetensors"}


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))


def rewrite(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


DAMAGES = {
    "no folder": lambda c: c.rename(c.parent / "elsewhere"),
    "no structure": lambda c: (c / "state.json").unlink(),
    "no tensors": lambda c: (c / "tensors.safetensors").unlink(),
    "empty structure": lambda c: (c / "state.json").write_text(""),
    "half a structure": lambda c: (c / "state.json").write_text(
        (c / "state.json").read_text()[: -(c / "state.json").stat().st_size // 2]
    ),
    "a list": lambda c: (c / "state.json").write_text("[1, 2]"),
    "no UTF-8": lambda c: (c / "state.json").write_bytes(b"\xff\xfe\x00"),
    "an empty object": lambda c: (c / "state.json").write_text("{}"),
    "another version": lambda c: rewrite(c / "state.json", lambda s: s.update(version=99)),
    "no state": lambda c: rewrite(c / "state.json", lambda s: s.pop("state")),
    "no clients": lambda c: rewrite(c / "state.json", lambda s: s["state"].pop("clients")),
    "another weight": lambda c: rewrite(
        c / "state.json", lambda s: s["state"]["hypotheses"][0].update(log_weight=-0.123)
    ),
    "a wrong index": lambda c: rewrite(
        c / "state.json", lambda s: s["state"]["hypotheses"][0].update(clusters=[999, 0])
    ),
    "truncated tensors": lambda c: (c / "tensors.safetensors").write_bytes(
        (c / "tensors.safetensors").read_bytes()[:-7]
    ),
    "empty tensors": lambda c: (c / "tensors.safetensors").write_bytes(b""),
    "a flipped bit in the tensors": lambda c: flip(c / "tensors.safetensors", -5),
    "a flipped bit in the header": lambda c: flip(c / "tensors.safetensors", 3),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_names_its_path(federation, tmp_path, damage):
    checkpoint = save(federation().run(1).state, tmp_path)
    DAMAGES[damage](checkpoint)
    with pytest.raises(CheckpointError, match=str(checkpoint)):
        load(checkpoint)


def test_a_checkpoint_of_another_type_is_refused(federation, tmp_path):
    checkpoint = save(federation().run(1).state, tmp_path)
    assert load(checkpoint, dtype=torch.float32).round == 1
    with pytest.raises(CheckpointError, match=r"holds torch\.float32, not torch\.float64"):
        load(checkpoint, dtype=torch.float64)


@pytest.mark.parametrize("kept", [object(), {1, 2}, np.float32(1.0), b"bytes"])
def test_a_policy_state_that_json_cannot_hold_is_refused(federation, tmp_path, kept):
    with pytest.raises(TypeError, match="state of a hypothesis"):
        save(_carrying(federation, {"kept": kept}), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", [(1, 2), {1: "a"}, {"deep": [(1,)]}])
def test_a_policy_state_that_json_would_change_is_refused(federation, tmp_path, kept):
    with pytest.raises(TypeError, match="state of a hypothesis"):
        save(_carrying(federation, {"kept": kept}), tmp_path)


def test_a_policy_state_of_plain_values_comes_back(federation, tmp_path):
    kept = {"sizes": [1, 2], "name": "ä", "deep": {"x": None, "y": 0.1, "z": True}}
    again = load(save(_carrying(federation, kept), tmp_path))
    assert dict(again.hypotheses.best.state) == kept


def _carrying(federation, kept):
    state = federation("fedavg").run(1).state
    marked = replace(state.hypotheses.best, state=kept)
    return replace(state, hypotheses=HypothesisSet((marked,), 1))


def test_paths_may_be_text_and_a_folder_of_checkpoints_is_told_from_one(federation, tmp_path):
    state = federation().initial_state()
    folder = str(tmp_path / "kept")
    saved = save(state, folder)
    assert newest(folder) == saved
    assert round_of(saved) == 0
    assert load(str(saved)).round == 0
    with pytest.raises(CheckpointError, match="folder of checkpoints; load one of"):
        load(folder)
    with pytest.raises(CheckpointError, match="is no checkpoint, such as round-000010"):
        load(tmp_path)
    with pytest.raises(TypeError, match=r"a FederationState, such as run\.state, got 3"):
        save(3, folder)
