"""A client whose answers are unusable is dropped for the round and reported; the rest go on."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from bcfl.data.clients import POOL
from bcfl.hypotheses.association import UNSEEN
from bcfl.protocol.answers import ClientInfo, Failure, Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.evidence import Evidence, EvidenceSum
from bcfl.protocol.statistics.loss import LossSum
from bcfl.protocol.statistics.predictions import PredictionSums
from bcfl.rounds.round import RoundConfig, server_round

LIAR = "c1"
SOME = ["fedavg", "wecfl", "bcfl-mht-4"]
MORE = ["ifca", "bcfl-g", "bcfl-c-3", "bcfl-mh-3", "bcfl-g-w", "feddrift", "faacl", "apd"]


@dataclass(frozen=True)
class Lying:
    """Passes on all answers but those of one client, which it replaces."""

    executor: object
    lie: object
    malicious: tuple = (LIAR,)

    def answer(self, requests, models, round):
        outcomes = self.executor.answer(requests, models, round)
        for request in requests:
            if request.client in self.malicious:
                answer = self.lie(request, outcomes[request])
                if answer is None:
                    del outcomes[request]
                else:
                    outcomes[request] = answer
        return outcomes


def trained(**changes):
    def lie(request, outcome):
        if not isinstance(request, Train):
            return outcome
        return replace(outcome, **{k: f(getattr(outcome, k)) for k, f in changes.items()})

    return lie


def scored(change):
    def lie(request, outcome):
        if not (isinstance(request, Score) and request.statistic.elementwise):
            return outcome
        return {key: change(one) for key, one in outcome.items()}

    return lie


def predicted(**changes):
    def lie(request, outcome):
        return replace(outcome, **changes) if isinstance(outcome, PredictionSums) else outcome

    return lie


def first(value):
    def change(tensor):
        changed = tensor.clone().reshape(-1)
        changed[0] = value
        return changed.reshape(tensor.shape)

    return change


TRAINING_LIES = {
    "NaN parameter": trained(mean=first(math.nan)),
    "infinite parameter": trained(mean=first(-math.inf)),
    "parameters too short": trained(mean=lambda t: t[:-1]),
    "parameters as a matrix": trained(mean=lambda t: t[None]),
    "no tensor": trained(mean=lambda t: t.tolist()),
    "integer parameters": trained(mean=lambda t: t.long()),
    "NaN precision": trained(curvature=first(math.nan)),
    "negative precision": trained(curvature=first(-1.0)),
    "precision of the wrong shape": trained(curvature=lambda t: torch.ones(3)),
    "buffers it does not have": trained(buffers=lambda t: torch.ones(1)),
    "no samples": trained(num_samples=lambda n: 0),
    "no number of samples": trained(num_samples=lambda n: None),
    "text": lambda request, outcome: "hello" if isinstance(request, Train) else outcome,
    "nothing": lambda request, outcome: None if isinstance(request, Train) else outcome,
    "a refusal": lambda request, outcome: (
        Failure("refused", "no") if isinstance(request, Train) else outcome
    ),
}
SCORE_LIES = {
    "NaN loss": scored(lambda one: replace(one, total=math.nan)),
    "loss of inf": scored(lambda one: replace(one, total=math.inf)),
    "loss of -inf": scored(lambda one: replace(one, total=-math.inf)),
    "loss of 1e300": scored(lambda one: replace(one, total=1e300)),
    "no samples": scored(lambda one: replace(one, num_samples=0)),
    "a number": scored(lambda one: 1.0),
    "text": lambda request, outcome: "hello" if isinstance(request, Score) else outcome,
    "nothing": lambda request, outcome: None if isinstance(request, Score) else outcome,
    "other models": lambda request, outcome: (
        {"another": LossSum(1.0, 0.0, 3)}
        if isinstance(request, Score) and request.statistic.elementwise
        else outcome
    ),
}
EVIDENCE_LIES = {
    "a loss instead": scored(lambda one: LossSum(1.0, 0.0, one.num_samples)),
    "NaN likelihood": scored(lambda one: replace(one, log_likelihood=math.nan)),
    "NaN gradient": scored(lambda one: replace(one, gradient=first(math.nan)(one.gradient))),
    "gradient too short": scored(lambda one: replace(one, gradient=one.gradient[:-1])),
    "curvature too short": scored(lambda one: replace(one, curvature=one.curvature[:-1])),
    "negative curvature": scored(lambda one: replace(one, curvature=-1 - one.curvature)),
    "no samples": scored(lambda one: replace(one, num_samples=0)),
}
PREDICTION_LIES = {
    "NaN likelihood": predicted(nll=math.nan),
    "infinite Brier": predicted(brier=math.inf),
    "classes that are not there": predicted(confusion=np.ones((3, 3), dtype=np.int64)),
    "negative counts": predicted(confusion=-np.ones((2, 2), dtype=np.int64)),
    "bins that are not there": predicted(bin_counts=np.ones(4, dtype=np.int64)),
    "NaN confidence": predicted(bin_confidence=np.full(15, math.nan)),
    "text": lambda request, outcome: (
        "hello" if isinstance(request, Score) and request.view == "test" else outcome
    ),
}
DESCRIPTION_LIES = {
    "no training view": lambda info: ClientInfo({"test": 3}, info.input_shape),
    "no training samples": lambda info: ClientInfo({"train": 0}, info.input_shape),
    "text": lambda info: "hello",
    "nothing": lambda info: None,
}


@pytest.fixture
def rounds(federation, recipe):
    """Run a method for some rounds with a lying client; returns the state and the records."""

    def run(method, lie, count=2, malicious=(LIAR,)):
        setup = federation(method)
        executor = Lying(setup.engine, lie, malicious)
        state, records = setup.initial_state(), []
        for _ in range(count):
            state, record = server_round(
                setup.method, setup.model, executor, state, RoundConfig(seed=setup.seed)
            )
            records.append(record)
        return state, records

    return run


def assert_dropped(state, records):
    for record in records:
        assert any(text.startswith(f"{LIAR}: ") for text in record.ledger.failures)
        assert all(text.startswith(f"{LIAR}: ") for text in record.ledger.failures)
    for hypothesis in state.hypotheses:
        for posterior in hypothesis.clusters:
            assert torch.isfinite(posterior.blocks[0].gaussian.mean).all()
            assert torch.isfinite(posterior.blocks[0].gaussian.precision).all()
    others = [c for c in state.hypotheses.best.association.clients if c != LIAR]
    assert all(state.hypotheses.best.association.label(c) != UNSEEN for c in others)


def each_lie_to(some, more, lies):
    """All lies to some methods; to the rest as well, where there is time for slow tests."""
    return [
        *(pytest.param(method, lie) for method in some for lie in lies),
        *(pytest.param(method, lie, marks=pytest.mark.slow) for method in more for lie in lies),
    ]


@pytest.mark.parametrize(("method", "lie"), each_lie_to(SOME, MORE, TRAINING_LIES))
def test_unusable_trainings_are_dropped(method, lie, rounds):
    state, records = rounds(method, TRAINING_LIES[lie])
    assert_dropped(state, records)


def test_a_malicious_client_is_dropped_by_every_method(name, rounds):
    """Training is all that a method must ask for; the centralised bound asks no client."""
    state, records = rounds(name, TRAINING_LIES["NaN parameter"])
    if name.startswith("centralised"):
        assert not any(record.ledger.failures for record in records)
    else:
        assert_dropped(state, records)


@pytest.mark.parametrize("lie", TRAINING_LIES)
def test_a_dropped_training_leaves_no_trace_in_the_models(lie, rounds):
    dropped, _ = rounds("fedavg", TRAINING_LIES[lie])
    absent, _ = rounds("fedavg", TRAINING_LIES["nothing"])
    mean, wanted = (
        s.hypotheses.best.clusters[0].blocks[0].gaussian.mean for s in (dropped, absent)
    )
    assert torch.equal(mean, wanted)


@pytest.mark.parametrize(
    ("method", "lie"), each_lie_to(["ifca", "bcfl-mh-3"], ["bcfl-g", "bcfl-c-3"], SCORE_LIES)
)
def test_unusable_scores_are_dropped(method, lie, rounds):
    state, records = rounds(method, SCORE_LIES[lie])
    assert_dropped(state, records)
    assert all(h.association.label(LIAR) == UNSEEN for h in state.hypotheses)


@pytest.mark.parametrize("temperature", [1.0, "mean"])
def test_one_infinite_loss_among_finite_ones_drops_the_client(temperature, recipe, rounds):
    def lie(request, outcome):
        if not (isinstance(request, Score) and request.statistic.elementwise):
            return outcome
        worst = request.models[0]
        return {k: replace(v, total=math.inf) if k == worst else v for k, v in outcome.items()}

    state, records = rounds(recipe("bcfl-mh-3", temperature=temperature), lie)
    assert_dropped(state, records)


@pytest.mark.parametrize("lie", EVIDENCE_LIES)
def test_unusable_evidence_is_dropped(lie, recipe, rounds):
    method = recipe("bcfl-mh-3", objective=Objective(local_steps=2, batch_size=4))
    method = replace(method, policy=replace(method.policy, evidence="joint", temperature=1.0))
    state, records = rounds(method, EVIDENCE_LIES[lie])
    assert_dropped(state, records)


@pytest.mark.parametrize("lie", PREDICTION_LIES)
def test_unusable_predictions_are_left_out_of_the_tests(lie, rounds):
    _, records = rounds("fedavg", PREDICTION_LIES[lie])
    assert all(set(r.evaluations) == {"c0", "c2", "c3", "c4", "c5"} for r in records)
    total = PredictionSums.total(records[-1].evaluations.values())
    assert total.num_samples == 25


@pytest.mark.parametrize("lie", DESCRIPTION_LIES)
@pytest.mark.parametrize("method", ["fedavg", "bcfl-mh-3"])
def test_clients_that_do_not_describe_themselves_take_no_part(method, lie, rounds):
    def altered(request, outcome):
        return DESCRIPTION_LIES[lie](outcome) if isinstance(request, Describe) else outcome

    state, records = rounds(method, altered)
    assert_dropped(state, records)
    assert all(LIAR not in record.participants for record in records)


def with_silenced(hypothesis, start):
    """The hypothesis with blocks that are zero in a warm-up as they were at the start."""
    if not any(block.is_zero for cluster in hypothesis.clusters for block in cluster.blocks):
        return hypothesis
    clusters = tuple(
        now.with_blocks({block.name: before for block in now.blocks if block.is_zero})
        for now, before in zip(hypothesis.clusters, start.clusters, strict=True)
    )
    return replace(hypothesis, clusters=clusters)


def test_a_federation_of_malicious_clients_learns_nothing_and_continues(
    name, rounds, federation, same_models
):
    all_clients = tuple(f"c{i}" for i in range(6))
    malicious = (*all_clients, POOL, *(f"{POOL} of group {group}" for group in range(6)))
    state, records = rounds(name, TRAINING_LIES["NaN parameter"], malicious=malicious)
    starts = federation(name).initial_state().hypotheses
    for hypothesis in state.hypotheses:
        start = starts[hypothesis.lineage[0]]
        assert same_models(with_silenced(hypothesis, start), start)
    failing = 1 if name.startswith("centralised") else 6
    assert all(len(record.ledger.failures) >= failing for record in records)


@pytest.mark.parametrize("method", ["fedavg", "wecfl", "bcfl-c-3", "bcfl-mh-3"])
def test_parameters_whose_squares_overflow_do_not_end_the_run(method, rounds):
    state, records = rounds(method, trained(mean=first(1e25)), count=4)
    assert_dropped(state, records)
    state, records = rounds(method, trained(mean=first(1e14)), count=4)
    assert torch.isfinite(state.hypotheses.best.clusters[0].blocks[0].gaussian.mean).all()


@pytest.mark.parametrize("method", ["fedavg", "bcfl-g", "bcfl-c-3"])
def test_precisions_that_overflow_their_type_do_not_end_the_run(method, rounds):
    huge = trained(curvature=lambda t: torch.full_like(t, 3e38))
    state, _ = rounds(method, huge, malicious=("c1", "c3"))
    for hypothesis in state.hypotheses:
        for posterior in hypothesis.clusters:
            assert torch.isfinite(posterior.blocks[0].gaussian.mean).all()


def test_a_failed_training_is_reported_once_for_all_hypotheses(rounds):
    _, records = rounds("bcfl-mh-3", TRAINING_LIES["NaN parameter"], count=1)
    (failure,) = {text for text in records[0].ledger.failures if "mean" in text}
    assert (
        failure == f"{LIAR}: client {LIAR!r} sent a trained model whose mean is not finite, "
        "when training on view 'train' (invalid)"
    )
    assert len(records[0].ledger.failures) == len(set(records[0].ledger.failures)) or (
        records[0].ledger.trainings_run > 6
    )


def test_an_evidence_answer_has_the_shape_of_the_model(rounds, recipe):
    """The honest answer passes, so that the tests above fail for their reasons."""
    method = recipe("bcfl-g")
    method = replace(method, policy=replace(method.policy, evidence="joint", temperature=1.0))
    seen = []

    def honest(request, outcome):
        if isinstance(request, Score) and request.statistic == Evidence():
            seen.extend(outcome.values())
        return outcome

    _, records = rounds(method, honest)
    assert not any(record.ledger.failures for record in records)
    assert {type(one) for one in seen} == {EvidenceSum}
    assert {tuple(one.gradient.shape) for one in seen} == {(8,)}


def test_an_honest_training_passes(rounds):
    seen = []

    def honest(request, outcome):
        if isinstance(request, Train):
            seen.append(outcome)
        return outcome

    _, records = rounds("bcfl-g", honest)
    assert not any(record.ledger.failures for record in records)
    assert {type(one) for one in seen} == {Trained}
