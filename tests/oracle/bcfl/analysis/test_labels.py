"""Tests of predicted labels against scipy and scikit-learn, on every executor."""

import numpy as np
import pytest
import torch
from scipy.stats import bernoulli
from sklearn import metrics as reference
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, methods
from bcfl.analysis import metrics
from bcfl.protocol.statistics.label_predictions import LabelSums

SLOPES = np.array([[[3.0, -1.0, 0.5], [-1.0, 2.0, 2.0]], [[-3.0, 1.0, 0.5], [1.0, -2.0, 2.0]]])
ROUNDS = 12


@pytest.fixture
def samples():
    random, clients = np.random.default_rng(5), {}
    for index in range(6):
        x = random.normal(size=(90, 2)).astype(np.float32)
        y = random.random((90, 3)) < 1 / (1 + np.exp(-2 * x @ SLOPES[index % 2]))
        clients[f"c{index}"] = (x, y)
    return clients


@pytest.fixture
def federation(samples):
    def of(name="ifca", options=None, **arguments):
        clients = [
            ClientData.from_arrays(c, (x[:50], y[:50]), (x[50:], y[50:]), index % 2)
            for index, (c, (x, y)) in enumerate(samples.items())
        ]
        training = Objective(local_steps=10, batch_size=10, learning_rate=0.2)
        chosen = {"num_clusters": 2, **(options or {})}
        method = methods.build(name, objective=training, **methods.applicable(name, chosen))
        return Federation(
            clients, lambda: nn.Linear(2, 3), method, seed=1, device="cpu", **arguments
        )

    return of


def sums_and_predictions():
    random = np.random.default_rng(0)
    logits, weights = 2 * random.normal(size=(3, 40, 4)), np.array([0.5, 0.2, 0.3])
    y = random.integers(0, 2, size=(40, 4))
    y[:, 3] = 0
    logits[:, :, 3] = -1.0
    mixture = np.tensordot(weights, 1 / (1 + np.exp(-logits)), axes=1)
    return LabelSums.of(logits, weights, y), logits, weights, y, mixture


def test_the_likelihood_is_that_of_all_labels_under_the_mixture():
    sums, logits, weights, y, mixture = sums_and_predictions()
    likelihoods = bernoulli(1 / (1 + np.exp(-logits))).pmf(y).prod(axis=2)
    assert sums.nll == pytest.approx(-np.log(weights @ likelihoods).sum())
    assert sums.brier == pytest.approx(((mixture - y) ** 2).sum())


def test_scores_are_those_of_scikit_learn():
    sums, _, _, y, mixture = sums_and_predictions()
    chosen, scores = mixture > 0.5, metrics.summarise_labels({"a": sums})
    assert scores["accuracy"] == pytest.approx(reference.accuracy_score(y, chosen))
    assert scores["micro_f1"] == pytest.approx(reference.f1_score(y, chosen, average="micro"))
    macro = reference.f1_score(y[:, :3], chosen[:, :3], average="macro")
    assert scores["macro_f1"] == pytest.approx(macro)
    by_label = [reference.brier_score_loss(y[:, k], mixture[:, k]) for k in range(4)]
    assert scores["brier"] == pytest.approx(np.mean(by_label))
    f1 = metrics.label_f1({"a": sums})
    np.testing.assert_allclose(f1[:3], reference.f1_score(y[:, :3], chosen[:, :3], average=None))
    assert np.isnan(f1[3])
    certain = LabelSums.of([200.0 * y - 100.0], [1.0], y)
    perfect = {"accuracy": 1, "micro_f1": 1, "macro_f1": 1, "nll": 0, "ece": 0, "brier": 0}
    assert metrics.summarise_labels({"a": certain}) == pytest.approx(perfect)


def test_calibration_of_each_label_is_the_gap_of_its_bins():
    sums, _, _, y, mixture = sums_and_predictions()
    for label, ece in enumerate(metrics.label_ece({"a": sums})):
        gaps = 0.0
        for low in np.arange(15) / 15:
            inside = (mixture[:, label] > low) & (mixture[:, label] <= low + 1 / 15)
            gaps += abs((y[inside, label] - mixture[inside, label]).sum())
        assert ece == pytest.approx(gaps / len(y))


def test_sums_of_several_clients_are_those_of_all_their_samples():
    whole, logits, weights, y, _ = sums_and_predictions()
    parts = [LabelSums.of(logits[:, i::3], weights, y[i::3]) for i in range(3)]
    total = LabelSums.total(parts)
    for name in vars(whole):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name))


@pytest.mark.parametrize("name", ["fedavg", "ifca", "default", "bcfl-mht-4", "fesem", "faacl"])
def test_metrics_are_those_of_the_predictions(name, federation, samples):
    run = federation(name).run(ROUNDS)
    served = [
        run.predict(c, x[50:], "plug-in", by="association").mean for c, (x, _) in samples.items()
    ]
    truth = np.concatenate([y[50:] for _, y in samples.values()])
    probabilities, scores = np.concatenate(served), run.metrics()
    assert scores["accuracy"] == pytest.approx(reference.accuracy_score(truth, probabilities > 0.5))
    if len(run.hypotheses) == 1:
        nll = [reference.log_loss(truth[:, k], probabilities[:, k]) for k in range(3)]
        assert scores["nll"] == pytest.approx(sum(nll), rel=1e-5)
    if name == "default":
        assert (scores["ari"], scores["micro_f1"] > 0.8, scores["ece"] < 0.12) == (1, True, True)


def test_uncertainties_are_those_of_each_label(federation, samples):
    run = federation("bcfl-mht-4", {"calibration": 0.2}).run(3)
    x, _ = samples["c0"]
    for predictive in ("plug-in", "linearised", "probit", "monte-carlo"):
        found = run.predict("c0", x[:5], predictive)
        assert found.mean.shape == found.entropy.shape == (5, 3)
        parts = found.data_uncertainty + found.model_uncertainty + found.association_uncertainty
        np.testing.assert_allclose(parts, found.entropy, atol=1e-9)
        p = found.mean
        np.testing.assert_allclose(
            found.entropy, -p * np.log(p) - (1 - p) * np.log(1 - p), atol=1e-9
        )
    with pytest.raises(ValueError, match="'bridge' is of classes, not of labels"):
        run.predict("c0", x[:5], "bridge")
    assert run.rule.temperature != 1.0


def test_tuning_finds_the_temperature_of_overconfident_labels(federation, samples):
    """Against the log loss of scikit-learn on the validation samples, by brute force."""
    federation = federation("fedavg", {"calibration": 0.4})
    run = federation.run(ROUNDS)
    views = [data.views["validation"] for data in federation.clients]
    truth = torch.cat([view.targets for view in views]).numpy()
    p = np.concatenate(
        [
            run.predict(data.client, view.inputs, "plug-in").mean
            for data, view in zip(federation.clients, views, strict=True)
        ]
    )
    logits, spread = np.log(p / (1 - p)), 0.5

    def loss(temperature):
        tempered = 1 / (1 + np.exp(-logits / temperature))
        labels = [reference.log_loss(truth[:, k], tempered[:, k]) for k in range(3)]
        return sum(labels) * len(truth) + (np.log(temperature) / spread) ** 2 / 2

    grid = [2 ** (i / 4) for i in range(-8, 9)]
    assert run.tuned("plug-in").temperature == pytest.approx(min(grid, key=loss))


def test_executors_agree(loop_and_other):
    loop, other = loop_and_other
    assert loop.metrics() == pytest.approx(other.metrics(), rel=1e-5, nan_ok=True)
    assert not any(record.ledger.failures for record in other.records)


def test_a_newcomer_is_associated_by_its_labels(federation, samples):
    run = federation("default").run(ROUNDS)
    x, y = samples["c1"]
    prediction = run.predict_new(x[50:], adaptation=(x[:20], y[:20]))
    together = prediction.co_association > 0.5
    assert together.tolist() == [index % 2 == 1 for index in range(6)]
    with pytest.raises(ValueError, match=r"adaptation: .* 3 labels of 0 or 1 per sample"):
        run.predict_new(x[50:], adaptation=(x[:20], y[:20, 0]))


def test_whole_numbers_in_rows_are_labels_and_must_be_zero_or_one(samples):
    x, y = samples["c0"]
    one = ClientData.from_arrays("a", (x, y))
    federation = Federation([one], nn.Linear(2, 3), methods.build("fedavg"), seed=0)
    assert federation.model.likelihood == "bernoulli"
    counts = ClientData.from_arrays("a", (x, 2 * y.astype(int)))
    with pytest.raises(
        ValueError, match=r"'a'.*targets must be 3 labels of 0 or 1 per sample, got"
    ):
        Federation([counts], nn.Linear(2, 3), methods.build("fedavg"), seed=0)
    single = Model(
        name="one", build=lambda: nn.Linear(2, 1), input_shape=(2,), num_outputs=1,
        likelihood="bernoulli",
    )  # fmt: skip
    first = ClientData.from_arrays("a", (x, y[:, 0]), (x, y[:, 0]))
    run = Federation([first], single, methods.build("fedavg"), seed=0).run(1)
    assert run.predict("a", x[:4]).mean.shape == (4, 1)


def test_reliability_is_of_the_probability_that_a_label_is_present(federation, samples):
    run = federation("fedavg").run(2)
    axes = run.plot_reliability()
    (line,) = (one for one in axes.lines if one.get_label() != "" and one.get_marker() == "o")
    p = np.concatenate([run.predict(c, x[50:], "plug-in").mean for c, (x, _) in samples.items()])
    places = np.unique(np.ceil(p.ravel() * 15))
    assert len(line.get_xdata()) == len(places)
