"""Aggregation under renaming, reordering and scaling of those who contribute."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bcfl import Aggregation, Association, Hypothesis, Model, Objective
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies import Candidate, Continue
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train

torch.set_num_threads(1)  # the problems are too small for more

MODEL = Model(
    name="linear",
    build=lambda: nn.Sequential(nn.Linear(2, 1)),
    input_shape=(2,),
    num_outputs=1,
    likelihood="gaussian",
)
RULES = st.sampled_from(["precision_weighted", "exact", "literal"])


@st.composite
def rounds(draw):
    """Some clients' trained models, with feeds into two clusters."""
    count = draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    contribution_weights = random.choice([0.0, 0.3, 1.0], size=(count, 2))
    replies = [
        Trained(
            mean=torch.tensor(random.normal(size=3), dtype=torch.float64),
            buffers=torch.empty(0),
            curvature=torch.tensor(random.gamma(1.0, size=3), dtype=torch.float64),
            num_samples=int(random.integers(1, 50)),
        )
        for _ in range(count)
    ]
    return contribution_weights, replies, random.permutation(count)


def combined(fusion, names, contribution_weights, replies, order):
    mean, buffers = MODEL.initial(0)
    born = from_initial(MODEL, "k", mean.double(), buffers, 1.0)
    parent = Hypothesis(
        clusters=(born, born), association=Association.unseen(tuple(sorted(names)), 2)
    )
    trainings = tuple(Train(names[i], born.key, Objective()) for i in order)
    chosen = Candidate(
        association=parent.association,
        trainings=trainings,
        contribution_weights=contribution_weights[list(order)],
        origins=(Continue(0), Continue(1)),
    )
    answers = dict(zip(trainings, (replies[i] for i in order), strict=True))
    clusters, _ = Aggregation(fusion=fusion).combine(MODEL, parent, chosen, answers, {}, 0)
    return clusters


@settings(deadline=None, max_examples=60)
@given(rounds(), RULES)
def test_the_order_of_trainings_changes_no_bit_and_no_key(problem, fusion):
    contribution_weights, replies, order = problem
    names = [f"c{i}" for i in range(len(replies))]
    straight = combined(fusion, names, contribution_weights, replies, range(len(replies)))
    shuffled = combined(fusion, names, contribution_weights, replies, order)
    for one, other in zip(straight, shuffled, strict=True):
        assert one.key == other.key
        assert torch.equal(one.mean(MODEL), other.mean(MODEL))
        assert torch.equal(one.precision(MODEL), other.precision(MODEL))


@settings(deadline=None, max_examples=60)
@given(rounds(), RULES)
def test_renaming_clients_changes_models_by_rounding_alone(problem, fusion):
    contribution_weights, replies, order = problem
    names = [f"c{i}" for i in range(len(replies))]
    renamed = [f"c{i}" for i in order]
    straight = combined(fusion, names, contribution_weights, replies, range(len(replies)))
    other = combined(fusion, renamed, contribution_weights, replies, range(len(replies)))
    for one, two in zip(straight, other, strict=True):
        torch.testing.assert_close(one.mean(MODEL), two.mean(MODEL), rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(one.precision(MODEL), two.precision(MODEL))


@settings(deadline=None, max_examples=60)
@given(rounds())
def test_a_weighted_mean_stays_within_its_inputs(problem):
    contribution_weights, replies, _ = problem
    names = [f"c{i}" for i in range(len(replies))]
    clusters = combined(
        "precision_weighted", names, contribution_weights, replies, range(len(replies))
    )
    for index, cluster in enumerate(clusters):
        means = [
            r.mean
            for r, feed in zip(replies, contribution_weights[:, index], strict=True)
            if feed > 0
        ]
        if means:
            stacked, mean = torch.stack(means), cluster.mean(MODEL)
            assert (mean >= stacked.min(0).values - 1e-9).all()
            assert (mean <= stacked.max(0).values + 1e-9).all()
            assert (cluster.precision(MODEL) >= 1.0).all()
