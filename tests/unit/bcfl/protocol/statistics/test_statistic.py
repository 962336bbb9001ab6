"""Each statistic says how it is written down, checked and counted."""

import json
import math
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
import torch

from bcfl.protocol import statistics
from bcfl.protocol.prediction_rule import PredictionRule
from bcfl.protocol.statistics.best_counts import BestModels
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.features import Features
from bcfl.protocol.statistics.held_out import HeldOutLosses
from bcfl.protocol.statistics.label_predictions import LabelPredictions
from bcfl.protocol.statistics.loss import Loss, LossSum
from bcfl.protocol.statistics.predictions import Predictions
from bcfl.protocol.statistics.regression import Regression
from bcfl.protocol.statistics.split_loss import SplitLoss, SplitLossSum
from bcfl.protocol.statistics.statistic import Statistic, of_numbers, to_numbers
from bcfl.protocol.statistics.support import PairedSupport
from posteriors.predictive import HeldOutSums, TuningGrid
from posteriors.predictive.feature_density import FeatureSums

GRID = TuningGrid((1.0, 10.0), (0.5, 1.0, 2.0))
TUNING = HeldOutLosses((0.25, 0.75), PredictionRule(predictive="linearised", num_draws=8), GRID)
EVERY = [
    Loss(),
    SplitLoss(),
    Evidence(),
    BestModels(),
    Features(),
    PairedSupport(0.3, "capped"),
    Predictions((0.25, 0.75), "logits"),
    TUNING,
    Regression((0.25, 0.75), "logits"),
    LabelPredictions((0.25, 0.75), "logits"),
]


@pytest.mark.parametrize("statistic", EVERY, ids=lambda one: one.name)
def test_a_statistic_is_its_name_and_numbers(statistic):
    text = json.dumps(to_numbers(statistic))
    again = of_numbers(json.loads(text))
    assert again == statistic
    assert hash(again) == hash(statistic)


def test_each_file_has_one_statistic_that_is_named_like_it():
    found = {
        (module.name, kind.name)
        for module in iter_modules(statistics.__path__)
        for kind in vars(import_module(f"{statistics.__name__}.{module.name}")).values()
        if isinstance(kind, type) and issubclass(kind, Statistic) and hasattr(kind, "name")
        if kind.__module__.endswith(f".{module.name}")
    }
    assert found == {(one.name, one.name) for one in EVERY}


@pytest.mark.parametrize("name", ["mean", "statistic", "os.path", ""])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="statistic must be one of"):
        of_numbers({"name": name})


def test_elementwise_answers_are_about_the_models_that_were_named(linear):
    one = LossSum(1.0, 0.0, 2)
    assert Loss().trouble({"k": one, "l": one}, linear, ("k", "l")) == ""
    assert "other models" in Loss().trouble({"k": one}, linear, ("k", "l"))


def test_sizes_are_those_of_the_answers(linear):
    bytes_up = {one.name: one.num_bytes(linear, 2) for one in EVERY}
    assert bytes_up == {
        "loss": 2 * 8,
        "split_loss": 2 * 2 * 8,
        "evidence": 2 * (8 + 2 * 4 * 8),
        "best_counts": 2 * 8,
        "features": 2 * 8 * (1 + 3 + 9),
        "support": 2 * 8,
        "predictions": 8 * (4 + 2 + 45),
        "held_out": 8 * (6 + 1),
        "regression": 8 * (4 + 4),
        "label_predictions": 8 * (4 + 2 * (3 + 45)),
    }


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (FeatureSums(4.0, torch.zeros(3).double(), torch.eye(3).double()), ""),
        (FeatureSums(0.0, torch.zeros(3), torch.eye(3)), "no feature sums"),
        (FeatureSums(float("nan"), torch.zeros(3), torch.eye(3)), "no feature sums"),
        (FeatureSums(4.0, torch.zeros(2), torch.eye(3)), "whose first has shape"),
        (FeatureSums(4.0, torch.zeros(3), torch.eye(3) / 0), "whose second is not finite"),
        (np.zeros(3), "no feature sums"),
    ],
)
def test_feature_sums_are_checked(linear, answer, text):
    trouble = Features().part_trouble(answer, linear, 1)
    assert (text in trouble) if text else (trouble == "")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (HeldOutSums(GRID, torch.ones(2, 3), 5), ""),
        (HeldOutSums(GRID, torch.ones(2, 3), 0), "no held-out sums"),
        (HeldOutSums(GRID, torch.ones(3, 2), 5), "another grid"),
        (HeldOutSums(TuningGrid((1.0,)), torch.ones(2, 3), 5), "another grid"),
        (HeldOutSums(GRID, torch.full((2, 3), float("nan")), 5), "no losses"),
        (HeldOutSums(GRID, torch.tensor([[1.0, 2, 3], [1, math.inf, 3]]), 5), "no losses"),
        (HeldOutSums(GRID, torch.tensor([[1.0, 2, 3], [1, -2, 3]]), 5), "no losses"),
    ],
)
def test_held_out_sums_are_checked(linear, answer, text):
    trouble = TUNING.part_trouble(answer, linear, 2)
    assert (text in trouble) if text else (trouble == "")


def test_halves_are_every_second_sample_and_scale_with_the_whole(linear):
    losses = np.array([1.0, 10.0, 2.0, 20.0, 3.0])
    whole = SplitLoss().combined([losses], torch.zeros(0), 5)
    assert (whole.total, whole.first_half, whole.second_half) == (36.0, 6.0, 30.0)
    assert SplitLoss().combined([losses], torch.zeros(0), 10).first_half == 12.0
    assert SplitLoss().part_trouble(whole, linear, 1) == ""


@pytest.mark.parametrize(
    "answer",
    [
        LossSum(1.0, 0.0, 2),
        SplitLossSum(1.0, 0.0, 2),
        SplitLossSum(1.0, 0.0, 2, math.inf),
        SplitLossSum(math.nan, 0.0, 2, 1.0),
        SplitLossSum(1.0, 0.0, 0, 1.0),
    ],
)
def test_losses_of_halves_are_checked(linear, answer):
    assert SplitLoss().part_trouble(answer, linear, 1)
