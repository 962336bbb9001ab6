"""Soft voting of several models: mean logits and mean probabilities may pick other classes."""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.executors import LoopExecutor
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.predictions import Predictions
from experiments.models import linear

LOGITS = ((6.0, 0.0, 5.0), (0.0, 1.5, 1.0), (0.0, 1.6, 1.2))


def predicted(pooling, target):
    """The sums of one sample whose logits under three models are `LOGITS`."""
    model = linear(1, 3, bias=False)
    one = (np.ones((1, 1), np.float32), np.array([target]))
    data = bcfl.ClientData.from_arrays("c", one, one)
    models = [
        from_initial(model, f"m{i}", torch.tensor(row), torch.empty(0), 1.0)
        for i, row in enumerate(LOGITS)
    ]
    keys = tuple(posterior.key for posterior in models)
    score = Score(
        client="c", models=keys, statistic=Predictions((1 / 3,) * 3, pooling), view="test"
    )
    executor = LoopExecutor.on([data], model, 0, torch.device("cpu"), torch.float32)
    return executor.answer([score], {p.key: p for p in models}, 0)[score]


def test_mean_logits_pick_class_2():
    mean = np.mean(LOGITS, axis=0)
    assert mean == pytest.approx((2, 1.033333, 2.4), abs=5e-7)
    sums = predicted("logits", 2)
    assert sums.confusion[2].tolist() == [0, 0, 1]
    assert sums.nll == pytest.approx(-np.log(np.exp(mean[2]) / np.exp(mean).sum()), abs=1e-6)


def test_mean_probabilities_pick_class_1():
    for target, probability in enumerate((0.319842, 0.360828, 0.319330)):
        sums = predicted("probabilities", target)
        assert sums.confusion[target].tolist() == [0, 1, 0]
        assert sums.nll == pytest.approx(-np.log(probability), abs=3e-6)
