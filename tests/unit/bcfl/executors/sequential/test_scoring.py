"""Scores of models on clients' samples."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import confusion_matrix
from torch.nn import functional

from bcfl import ClientData
from bcfl.executors import LoopExecutor
from bcfl.protocol.answers import Failure
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.best_counts import BestModels
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.loss import Loss, LossSum
from bcfl.protocol.statistics.predictions import Predictions
from bcfl.protocol.statistics.support import PairedSupport
from posteriors.curvature import diagonal

CPU = torch.device("cpu")


@pytest.fixture
def ask(newborn):
    def of(model, clients, requests, round=0, seeds=(0, 1), run=0):
        executor = LoopExecutor.on(clients, model, run, CPU, torch.float32)
        models = [newborn(model, seed) for seed in seeds]
        keys = {f"m{i}": m for i, m in enumerate(models)}
        return executor.answer(requests, keys, round)

    return of


def logits(mean, inputs):
    return inputs.double() @ mean[:6].view(2, 3).double().T + mean[6:].double()


def test_losses_are_summed_over_all_samples(linear, clients, ask, newborn):
    request = Score(client="c2", models=("m1", "m0"))
    answer = ask(linear, clients, [request])[request]
    view = clients[2].views["train"]
    for key, seed in (("m0", 0), ("m1", 1)):
        out = logits(newborn(linear, seed).mean(linear), view.inputs)
        wanted = functional.cross_entropy(out, view.targets, reduction="sum")
        assert answer[key].total == pytest.approx(float(wanted), rel=1e-5)
        assert (answer[key].standard_error, answer[key].num_samples) == (0.0, 10)


def test_a_subset_estimates_the_total_and_its_error(linear, make_client, ask):
    data = make_client("a", 40)
    everything = Score(client="a", models=("m0",))
    few = Score(client="a", models=("m0",), samples=8)
    truth = ask(linear, [data], [everything])[everything]["m0"].total
    drawn = [ask(linear, [data], [few], run=run)[few]["m0"] for run in range(600)]
    totals = np.array([one.total for one in drawn])
    assert abs(totals.mean() - truth) < 5 * totals.std() / math.sqrt(600)
    squared = np.mean([one.standard_error**2 for one in drawn])
    assert squared == pytest.approx(totals.var(), rel=0.2)
    assert {one.num_samples for one in drawn} == {40}


def test_all_models_see_the_same_subset(linear, make_client, ask):
    both = Score(client="a", models=("m0", "m1"), samples=8)
    alone = Score(client="a", models=("m1",), samples=8)
    answers = ask(linear, [make_client("a", 40)], [both, alone])
    assert answers[both]["m1"] == answers[alone]["m1"]


def test_the_subset_is_the_same_in_all_rounds(linear, make_client, ask):
    few, data = Score(client="a", models=("m0",), samples=8), make_client("a", 40)
    first, later = (ask(linear, [data], [few], round)[few] for round in (0, 7))
    assert first == later


def test_one_sample_has_no_measurable_spread(linear, make_client, ask):
    request = Score(client="a", models=("m0",), samples=1)
    answer = ask(linear, [make_client("a", 5)], [request])[request]["m0"]
    assert answer == LossSum(answer.total, 0.0, 5)


def test_evidence_is_the_expansion_of_the_log_likelihood(linear, clients, ask, newborn):
    request = Score(client="c0", models=("m0",), statistic=Evidence())
    answer = ask(linear, clients, [request])[request]["m0"]
    view = clients[0].views["train"]
    mean = newborn(linear).mean(linear).double().requires_grad_()

    def log_likelihood(parameters):
        out = logits(parameters, view.inputs)
        return -functional.cross_entropy(out, view.targets, reduction="sum")

    (gradient,) = torch.autograd.grad(log_likelihood(mean), mean)
    hessian = torch.autograd.functional.hessian(log_likelihood, mean.detach())
    assert answer.log_likelihood == pytest.approx(float(log_likelihood(mean.detach())), rel=1e-5)
    torch.testing.assert_close(answer.gradient.double(), gradient, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(answer.curvature.double(), -hessian.diagonal(), rtol=1e-4, atol=1e-5)


def test_evidence_checks_a_network_once(linear, clients, ask, monkeypatch):
    checked = []
    monkeypatch.setattr(diagonal, "require_exact_rules", lambda module, *_: checked.append(module))
    requests = [
        Score(client=data.client, models=("m0", "m1"), statistic=Evidence()) for data in clients
    ]
    ask(linear, clients, requests)
    assert len(checked) == 1


def test_a_prediction_is_that_of_the_mixture(linear, clients, ask, newborn):
    request = Score(
        client="c1", models=("m0", "m1"), statistic=Predictions((0.3, 0.7)), view="test"
    )
    sums = ask(linear, clients, [request])[request]
    view = clients[1].views["test"]
    mixture = sum(
        weight * logits(newborn(linear, seed).mean(linear), view.inputs).softmax(1)
        for seed, weight in ((0, 0.3), (1, 0.7))
    ).numpy()
    targets = view.targets.numpy()
    assert sums.nll == pytest.approx(-np.log(mixture[np.arange(4), targets]).sum(), rel=1e-5)
    found = confusion_matrix(targets, mixture.argmax(1), labels=[0, 1])
    assert sums.confusion.tolist() == found.tolist()


def test_a_gaussian_loss_is_the_negative_log_density(regression, ask, newborn):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(5, 3)).astype(np.float32), random.normal(size=5).astype(np.float32)
    request = Score(client="a", models=("m0",))
    answer = ask(regression, [ClientData.from_arrays("a", (x, y))], [request])[request]["m0"]
    mean = newborn(regression).mean(regression).numpy()
    density = torch.distributions.Normal(torch.tensor(x @ mean[:3] + mean[3]), 1.0)
    wanted = -density.log_prob(torch.tensor(y)).sum()
    assert answer.total == pytest.approx(float(wanted), rel=1e-5)


def test_running_statistics_are_frozen(batch_norm, make_client, ask):
    """The loss of a sample does not depend on the samples beside it."""
    data = make_client("a", 6)
    view = data.views["train"]
    request = Score(client="a", models=("m0",))
    whole = ask(batch_norm, [data], [request])[request]["m0"].total
    parts = [
        ask(batch_norm, [ClientData("a", {"train": view.take(torch.tensor([i]))})], [request])
        for i in range(6)
    ]
    assert sum(p[request]["m0"].total for p in parts) == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize("view", ["test", "memory:1"])
def test_a_view_that_is_not_there_is_refused(linear, make_client, ask, view):
    request = Score(client="a", models=("m0",), statistic=Loss(), view=view)
    answer = ask(linear, [make_client("a", 5, tested=0)], [request])[request]
    assert isinstance(answer, Failure)
    assert (answer.kind, "'a' cannot give loss on" in answer.text) == ("refused", True)


def test_a_regression_has_no_class_predictions(regression, make_client, ask):
    request = Score(client="a", models=("m0",), statistic=Predictions((1.0,)), view="train")
    assert isinstance(ask(regression, [make_client("a", 5)], [request])[request], Failure)


def test_best_counts_say_on_how_many_samples_each_model_is_best(linear, clients, ask, newborn):
    request = Score(client="c3", models=("m1", "m0", "m2"), statistic=BestModels(), view="train")
    answer = ask(linear, clients, [request], seeds=(0, 1, 2))[request]
    view = clients[3].views["train"]
    losses = [
        functional.cross_entropy(
            logits(newborn(linear, seed).mean(linear), view.inputs), view.targets, reduction="none"
        )
        for seed in (1, 0, 2)
    ]
    best = torch.stack(losses).argmin(0)
    assert answer.counts.tolist() == [int((best == i).sum()) for i in range(3)]
    assert answer.num_samples == 11


@pytest.mark.parametrize("loss", ["raw", "capped"])
def test_support_compares_the_own_model_with_the_offered_one(linear, clients, ask, newborn, loss):
    asked = [
        Score(client="c3", models=pair, statistic=PairedSupport(0.3, loss), view="train")
        for pair in (("m0", "m1"), ("m1", "m0"))
    ]
    answers = ask(linear, clients, asked)
    view = clients[3].views["train"]
    fits = {}
    for key, seed in (("m0", 0), ("m1", 1)):
        out = logits(newborn(linear, seed).mean(linear), view.inputs)
        losses = functional.cross_entropy(out, view.targets, reduction="none").numpy()
        right = (out.argmax(1) == view.targets).numpy()
        margin = 0.3 if loss == "raw" else 0.3 * right
        cost = losses if loss == "raw" else np.where(right, losses, math.log(2))
        fits[key] = (cost, cost + margin)
    for request in asked:
        own, other = request.models
        difference = np.round(fits[own][1] - fits[other][0], 6)
        wanted = stats.wilcoxon(difference[difference != 0], alternative="greater").pvalue
        assert answers[request].p_value == pytest.approx(wanted, abs=1e-6)
        assert answers[request].num_pairs == (difference != 0).sum()
    assert answers[asked[0]] != answers[asked[1]]


def test_support_takes_two_models_and_capped_losses_take_classes(
    linear, regression, make_client, ask
):
    data = make_client("a", 5)
    three = Score(client="a", models=("m0",), statistic=PairedSupport(), view="train")
    assert isinstance(ask(linear, [data], [three])[three], Failure)
    capped = Score(
        client="a", models=("m0", "m1"), statistic=PairedSupport(loss="capped"), view="train"
    )
    assert isinstance(ask(regression, [data], [capped])[capped], Failure)
