"""Checkpoints of which any byte is gone or another are refused, or are the state they were."""

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bcfl import ClientData, Federation, Model, checkpoint
from bcfl.rounds.checkpoint import CheckpointError
from tests.recipes import built

FILES = ("state.json", "tensors.safetensors")
EVERY_BYTE, PLACES = 4096, 200


def network():
    return nn.Linear(1, 2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small checkpoint, and the contents of its files."""
    x = np.linspace(-1, 1, 6)[:, None]
    clients = [ClientData.from_arrays(name, (x, np.arange(6) % 2)) for name in "ab"]
    model = Model(name="m", build=network, input_shape=(1,), num_outputs=2)
    run = Federation(clients, model, built("fedavg"), device="cpu").run(rounds=1)
    path = checkpoint.save(run.state, tmp_path_factory.mktemp("saved"))
    return path, {name: (path / name).read_bytes() for name in FILES}


def loaded(path):
    """The parameters and labels of a checkpoint, None where it is refused by its path."""
    try:
        state = checkpoint.load(path)
    except CheckpointError as error:
        return None if str(path) in str(error) else error
    best = state.hypotheses.best
    means = torch.cat([b.gaussian.mean for p in best.clusters for b in p.blocks])
    return means.tolist(), best.association.labels.tolist(), best.log_weight, state.round


def written(path, name, content):
    (path / name).write_bytes(content)
    return path


@pytest.fixture
def copied(saved, tmp_path):
    path, contents = saved
    return shutil.copytree(path, tmp_path / path.name), contents


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_off_anywhere_is_refused(copied, name):
    path, contents = copied
    size = len(contents[name])
    step = 1 if size < EVERY_BYTE else max(1, size // PLACES)
    for length in range(0, size, step):
        assert loaded(written(path, name, contents[name][:length])) is None, length


def check_altered(path, contents, name, place, byte):
    original = contents[name]
    place %= len(original)
    changed = original[:place] + bytes([byte]) + original[place + 1 :]
    found = loaded(written(path, name, changed))
    again = loaded(written(path, name, original))
    assert again is not None
    assert found in (None, again)


def altered(path, contents, count):
    @settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @given(st.sampled_from(FILES), st.integers(0, 10**6), st.integers(0, 255))
    def run(name, place, byte):
        check_altered(path, contents, name, place, byte)

    run()


def test_a_file_with_another_byte_is_refused(copied):
    altered(*copied, 300)


@pytest.mark.slow
def test_a_file_with_any_other_byte_is_refused(copied):
    altered(*copied, 20_000)


def test_single_bits_of_the_tensors_are_noticed(copied):
    path, contents = copied
    original = contents["tensors.safetensors"]
    for place in range(0, len(original), max(1, len(original) // PLACES)):
        flipped = original[place] ^ (1 << place % 8)
        content = original[:place] + bytes([flipped]) + original[place + 1 :]
        assert loaded(written(path, "tensors.safetensors", content)) is None, place


def test_files_of_another_checkpoint_are_noticed(copied):
    path, contents = copied
    for name, other in (FILES, FILES[::-1]):
        assert loaded(written(path, name, contents[other])) is None
        written(path, name, contents[name])
