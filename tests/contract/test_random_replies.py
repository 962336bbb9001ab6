"""Answers that one client alters at random are dropped, or used as what they are; rounds go on."""

from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bcfl.hypotheses.association import UNSEEN
from bcfl.rounds.round import RoundConfig, server_round

LIAR = "c1"
METHODS = ["fedavg", "ifca", "bcfl-mh-3", "faacl", "fedsoft", "feddrift", "ocfl-hdbscan", "apd"]
SETTINGS = {
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],  # shrinking takes minutes and tells little more
    "suppress_health_check": [HealthCheck.function_scoped_fixture],
}

NUMBERS = st.one_of(
    st.sampled_from([0, -1, 1, 2**53, 2**63, 10**400, True, 1.5, -0.0, 1e38, 1e300]),
    st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e-320, np.float32(2), np.int8(3)]),
)
JUNK = st.one_of(
    NUMBERS,
    st.sampled_from([None, "text", b"bytes", (), [], {}, {"a": 1}, object(), complex(1, 2)]),
    st.sampled_from(
        [
            np.zeros((2, 2), object),
            np.array("text"),
            np.ma.masked_all(3),
            np.zeros(0),
            torch.zeros(0),
            torch.tensor(float("nan")),
            torch.zeros(8, dtype=torch.complex64),
            torch.zeros(8).to_sparse(),
            torch.zeros(8, device="meta"),
            torch.zeros(8, dtype=torch.bfloat16),
            torch.zeros(8, 1).expand(8, 8),
        ]
    ),
)


def like(draw, value):
    """Something of the shape of an honest value, with other numbers."""
    if isinstance(value, torch.Tensor) and value.numel():
        changed = value.detach().clone().reshape(-1)
        number = draw(st.sampled_from([0.0, -1.0, 1e14, 1e29, 1e38, float("nan"), float("inf")]))
        changed[draw(st.integers(0, len(changed) - 1))] = number
        return changed.reshape(value.shape)
    return draw(NUMBERS)


def altered(draw, answer):
    """An answer of which some part at random is another one."""
    if draw(st.integers(0, 5)) == 0:
        return draw(JUNK)
    if isinstance(answer, dict) and answer:
        key = draw(st.sampled_from(sorted(answer, key=str)))
        return {**answer, key: altered(draw, answer[key])}
    if is_dataclass(answer) and fields(answer):
        name = draw(st.sampled_from([one.name for one in fields(answer)]))
        try:
            return replace(answer, **{name: altered(draw, getattr(answer, name))})
        except (TypeError, ValueError, OverflowError):
            return None  # such an answer cannot be made
    return draw(JUNK) if draw(st.booleans()) else like(draw, answer)


@dataclass(frozen=True)
class Altering:
    """Passes on all answers, those of one client with a part at random."""

    executor: object
    draw: object

    def answer(self, requests, models, round):
        outcomes = self.executor.answer(requests, models, round)
        for request in requests:
            if request.client == LIAR and self.draw(st.booleans()):
                outcomes[request] = altered(self.draw, outcomes[request])
        return outcomes


def check_rounds(setup, data):
    """Two rounds end, and their models, weights and losses are finite."""
    executor, state = Altering(setup.engine, data.draw), setup.initial_state()
    for _ in range(2):
        state, record = server_round(
            setup.method, setup.model, executor, state, RoundConfig(seed=setup.seed)
        )
    assert all(text.startswith(f"{LIAR}: ") for text in record.ledger.failures)
    assert np.isfinite(state.hypotheses.log_weights).all()
    for hypothesis in state.hypotheses:
        for block in (block for cluster in hypothesis.clusters for block in cluster.blocks):
            assert bool(torch.isfinite(block.gaussian.mean).all())
            assert bool((block.gaussian.precision > 0).all())
    best = state.hypotheses.best.association
    assert all(best.label(client) != UNSEEN for client in best.clients if client != LIAR)
    assert all(np.isfinite(sums.nll) for sums in record.evaluations.values())


@pytest.mark.parametrize("method", METHODS)
def test_rounds_go_on_whatever_a_client_answers(federation, method):
    setup = federation(method)

    @settings(max_examples=12, derandomize=True, **SETTINGS)
    @given(st.data())
    def run(data):
        check_rounds(setup, data)

    run()


@pytest.mark.slow
def test_more_rounds_go_on_whatever_a_client_answers(federation, name):
    setup = federation(name)

    @settings(max_examples=200, **SETTINGS)
    @given(st.data())
    def run(data):
        check_rounds(setup, data)

    run()
