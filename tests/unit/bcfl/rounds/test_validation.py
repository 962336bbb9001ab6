"""Usable answers pass as they are; see the contract tests for what happens to the others."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Objective
from bcfl.protocol.answers import ClientInfo, Failure, Trained
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.best_counts import BestCounts, BestModels
from bcfl.protocol.statistics.evidence import Evidence, EvidenceSum
from bcfl.protocol.statistics.loss import Loss, LossSum
from bcfl.protocol.statistics.predictions import Predictions, PredictionSums
from bcfl.protocol.statistics.split_loss import SplitLoss, SplitLossSum
from bcfl.protocol.statistics.support import PairedSupport, SupportTest
from bcfl.rounds.validation import checked

TRAIN = Train("a", "k", Objective())


def trained(mean=0.0, buffers=None, curvature=1.0, samples=3):
    statistics = torch.tensor([0.0] * 4 + [1.0] * 4) if buffers is None else torch.tensor(buffers)
    return Trained(
        mean=torch.full((34,), mean),
        buffers=statistics,
        curvature=torch.tensor(curvature),
        num_samples=samples,
    )


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (Describe("a"), ClientInfo({"train": 1, "test": 0}, (3,))),
        (Score(client="a", models=("k",)), {"k": LossSum(-3.0, 0.1, 2)}),
        (
            Score(client="a", models=("k",), statistic=Evidence()),
            {"k": EvidenceSum(-1.0, torch.ones(34), torch.zeros(34), 2)},
        ),
        (
            Score(client="a", models=("k",), statistic=Predictions((1.0,)), view="test"),
            PredictionSums.of(np.array([[0.2, 0.8]]), np.array([1])),
        ),
        (
            Score(client="a", models=("k", "m"), statistic=BestModels()),
            BestCounts(np.array([0, 3]), 4),
        ),
        (Score(client="a", models=("k", "m"), statistic=PairedSupport()), SupportTest(0.25, 3, 4)),
        (TRAIN, trained()),
        (TRAIN, trained(curvature=[0.0] * 34)),
        (TRAIN, Failure("crashed", "out of memory")),
    ],
)
def test_usable_answers_and_failures_pass_as_they_are(batch_norm, request_, answer):
    assert checked(request_, answer, batch_norm) is answer


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (trained(mean=float("nan")), "client 'a' sent a trained model whose mean is not finite"),
        (trained(mean=1e16), r"whose mean has entries beyond 1e\+15"),
        (trained(curvature=-1.0), "a negative precision or a model trained on no sample"),
        (trained(samples=0), "a negative precision or a model trained on no sample"),
        (trained(curvature=[1.0]), r"whose curvature has shape \(1,\)"),
        (trained(buffers=[0.0] * 7), r"whose buffers has shape \(7,\)"),
        (trained(buffers=[0.0] * 4 + [-1.0] * 4), "a negative running variance"),
        (trained(buffers=[float("inf")] * 8), "whose buffers is not finite"),
    ],
)
def test_unusable_trainings_become_failures_that_say_why(batch_norm, answer, text):
    failure = checked(TRAIN, answer, batch_norm)
    assert isinstance(failure, Failure)
    assert failure.kind == "invalid"
    assert re.search(text, failure.text)


def complex_predictions():
    sums = PredictionSums.of(np.array([[0.2, 0.8]]), np.array([1]))
    return replace(sums, bin_confidence=sums.bin_confidence.astype(complex))


@pytest.mark.parametrize(
    ("statistic", "answer"),
    [
        (Loss(), {"k": LossSum(1 + 2j, 0.0, 2)}),
        (Loss(), {"k": LossSum(np.complex128(1), 0.0, 2)}),
        (SplitLoss(), {"k": SplitLossSum(1.0, 0.0, 2, 1j)}),
        (Evidence(), {"k": EvidenceSum(-1j, torch.ones(34), torch.zeros(34), 2)}),
        (Predictions((1.0,)), complex_predictions()),
    ],
)
def test_complex_numbers_are_no_answers(batch_norm, statistic, answer):
    failure = checked(Score(client="a", models=("k",), statistic=statistic), answer, batch_norm)
    assert isinstance(failure, Failure)
    assert failure.kind == "invalid"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (BestCounts(np.array([1, 2, 0]), 3), "counts of the wrong shape or sum"),
        (BestCounts(np.array([1, 4]), 3), "counts of the wrong shape or sum"),
        (BestCounts(np.array([-1, 4]), 3), "counts of the wrong shape or sum"),
        (BestCounts(np.array([0.5, 0.5]), 3), "counts of the wrong shape or sum"),
        (BestCounts(np.array([1, 1]), 0), "no counts"),
        ({"k": LossSum(1.0, 0.0, 3)}, "no counts"),
    ],
)
def test_unusable_counts_become_failures(batch_norm, answer, text):
    failure = checked(
        Score(client="a", models=("k", "m"), statistic=BestModels()), answer, batch_norm
    )
    assert isinstance(failure, Failure)
    assert text in failure.text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (SupportTest(float("nan"), 3, 4), "a support test whose numbers cannot be"),
        (SupportTest(1.1, 3, 4), "a support test whose numbers cannot be"),
        (SupportTest(0.5, 5, 4), "a support test whose numbers cannot be"),
        (SupportTest(0.5, 0, 0), "no support test"),
        (LossSum(1.0, 0.0, 3), "no support test"),
    ],
)
def test_unusable_support_tests_become_failures(batch_norm, answer, text):
    failure = checked(
        Score(client="a", models=("k", "m"), statistic=PairedSupport()), answer, batch_norm
    )
    assert isinstance(failure, Failure)
    assert text in failure.text
