"""Random federations: any participation, any drop-outs, any sizes, saved and resumed anywhere."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bcfl import ClientData, Federation, Model, Objective
from bcfl.hypotheses.association import UNSEEN
from bcfl.rounds.checkpoint import load, save
from tests.recipes import built

pytestmark = pytest.mark.filterwarnings("ignore::bcfl.rounds.UntrainedWarning")

torch.set_num_threads(1)  # the problems are too small for more

MODEL = Model(
    name="linear", build=lambda: nn.Sequential(nn.Linear(2, 2)), input_shape=(2,), num_outputs=2
)
NAMES = st.sampled_from(
    ["fedavg", "ifca", "wecfl", "bcfl-g", "bcfl-c-2", "bcfl-mh-3", "bcfl-mht-3", "bcfl-mh-2-w"]
)


@st.composite
def federations(draw):
    """A federation of up to seven clients of very different sizes."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=2, max_size=7))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    clients = [
        ClientData.from_arrays(
            f"c{i}",
            (random.normal(size=(n, 2)), random.integers(0, 2, n)),
            (random.normal(size=(2, 2)), random.integers(0, 2, 2))
            if random.random() < 0.7
            else None,
        )
        for i, n in enumerate(sizes)
    ]
    objective = Objective(
        local_steps=draw(st.integers(1, 3)), batch_size=draw(st.integers(1, 8)), learning_rate=0.1
    )
    shared = dict(
        num_clusters=draw(st.integers(2, len(sizes))),
        objective=objective,
        temperature=draw(st.sampled_from(["mean", 1.0, 20.0])),
        score_samples=draw(st.sampled_from([None, 3])),
    )
    return Federation(
        clients,
        MODEL,
        built(draw(NAMES), **shared),
        seed=draw(st.integers(0, 99)),
        client_fraction=draw(st.sampled_from([0.3, 0.6, 1.0])),
        drop_out=draw(st.sampled_from([0.0, 0.4, 1.0])),
        device="cpu",
    )


@settings(deadline=None, max_examples=60)
@given(federations(), st.integers(1, 4))
def test_rows_sum_to_one_and_absent_clients_keep_their_rows(federation, rounds):
    run = federation.run(rounds)
    for record in run.records:
        weights = np.exp(record.snapshot.log_weights)
        assert abs(weights.sum() - 1) < 1e-9
        assert not record.snapshot.log_captured_mass > 0
        for association in record.snapshot.associations:
            rows = association.serving.sum(axis=1)
            seen = association.labels != UNSEEN
            np.testing.assert_allclose(rows, seen.astype(float), atol=1e-9)
    p = run.association_probabilities()
    assert ((abs(p.sum(axis=1) - 1) < 1e-9) | (p.sum(axis=1) == 0)).all()
    for client in run.clients:
        prediction = run.predict(client, np.zeros((1, 2)))
        assert abs(prediction.mean.sum() - 1) < 1e-6


@settings(deadline=None, max_examples=40)
@given(federations(), st.integers(1, 2), st.integers(1, 2))
def test_saving_and_loading_anywhere_changes_no_bit(federation, before, after):
    whole = federation.run(before + after)
    half = federation.run(before).state
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(save(half, Path(folder)))
    resumed = federation.run(before + after, state=loaded)
    for one, other in zip(whole.hypotheses, resumed.hypotheses, strict=True):
        assert one.log_weight == other.log_weight
        assert one.association.serving.tolist() == other.association.serving.tolist()
        for mine, yours in zip(one.clusters, other.clusters, strict=True):
            assert mine.key == yours.key
            assert torch.equal(mine.mean(MODEL), yours.mean(MODEL))
            assert torch.equal(mine.precision(MODEL), yours.precision(MODEL))


@settings(deadline=None, max_examples=30)
@given(federations(), st.randoms(use_true_random=False))
def test_the_order_of_clients_changes_no_bit(federation, random):
    shuffled = list(federation.clients)
    random.shuffle(shuffled)
    again = Federation(
        shuffled,
        MODEL,
        federation.method,
        federation.seed,
        client_fraction=federation.client_fraction,
        drop_out=federation.drop_out,
        device="cpu",
    )
    one, other = federation.run(2), again.run(2)
    assert one.hypotheses.log_weights.tolist() == other.hypotheses.log_weights.tolist()
    for mine, yours in zip(one.hypotheses, other.hypotheses, strict=True):
        assert mine.association.serving.tolist() == yours.association.serving.tolist()
        assert [p.key for p in mine.clusters] == [p.key for p in yours.clusters]
        for a, b in zip(mine.clusters, yours.clusters, strict=True):
            assert torch.equal(a.mean(MODEL), b.mean(MODEL))
