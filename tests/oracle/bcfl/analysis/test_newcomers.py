"""Clients never seen: against sums by hand, against Pyro, and against members of their groups."""

import itertools
from dataclasses import replace

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy import stats
from scipy.special import log_softmax, logsumexp

import bcfl
import bcfl.methods
from bcfl.hypotheses.history import Snapshot
from bcfl.hypotheses.posterior import from_initial
from experiments.models import linear, mlp

NAMES = ("a", "b", "c", "d")
MODEL, NUMBERS = linear(2, 3), linear(2, 3, "gaussian")


def known_run(precision=1e6):
    """Three hypotheses with labels and models of their own."""
    random = np.random.default_rng(5)
    hypotheses = []
    for index, labels in enumerate([[0, 0, 1, 1], [1, 1, 0, 1], [0, 0, 1, 0]]):
        models = [
            from_initial(
                MODEL,
                f"{index} {i}",
                torch.from_numpy(random.normal(size=9).astype(np.float32)),
                torch.empty(0),
                precision,
            )
            for i in range(2)
        ]
        association = bcfl.Association(NAMES, np.array(labels), 2)
        hypotheses.append(
            bcfl.Hypothesis(
                clusters=tuple(models), association=association, log_weight=float(random.normal())
            )
        )
    found = bcfl.HypothesisSet.weighted(hypotheses, 1, 0.0)
    state = bcfl.FederationState(hypotheses=found, history=(Snapshot.of(found),))
    return bcfl.Run(model=MODEL, state=state, records=(), groups={})


def run_of_numbers():
    """The same hypotheses, whose models predict three numbers."""
    return replace(known_run(), model=NUMBERS)


def samples(count, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(count, 2)).astype(np.float32), random.integers(3, size=count)


def log_probabilities(posterior, inputs):
    flat = posterior.mean(MODEL).double().numpy()
    return log_softmax(inputs @ flat[:6].reshape(3, 2).T + flat[6:], axis=1)


def renamed(hypotheses):
    """Numbers of each hypothesis' clusters in the leading one, by trying both."""
    leading = hypotheses.best.association.labels
    orders = []
    for hypothesis in hypotheses:
        labels = hypothesis.association.labels
        shared = {o: (np.array(o)[labels] == leading).sum() for o in itertools.permutations([0, 1])}
        orders.append(max(shared, key=shared.get))
    return orders


@pytest.mark.parametrize("temperature", [1.0, 7.0, "mean"])
def test_newcomers_against_all_pairs_by_hand(temperature):
    run, (few, classes), (x, _) = known_run(), samples(5), samples(4, seed=1)
    divisor = len(classes) if temperature == "mean" else temperature
    pairs = []
    for hypothesis, order in zip(run.hypotheses, renamed(run.hypotheses), strict=True):
        for cluster, posterior in enumerate(hypothesis.clusters):
            logs = log_probabilities(posterior, few)[np.arange(len(classes)), classes].sum()
            weight = hypothesis.log_weight - np.log(2) + logs / divisor
            pairs.append((weight, order[cluster], np.exp(log_probabilities(posterior, x))))
    total = logsumexp([weight for weight, *_ in pairs])
    association, mean = np.zeros(2), np.zeros((4, 3))
    for weight, cluster, probabilities in pairs:
        association[cluster] += np.exp(weight - total)
        mean += np.exp(weight - total) * probabilities
    found = run.predict_new(x, (few, classes), temperature=temperature)
    np.testing.assert_allclose(found.association, association, rtol=1e-5)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-5)
    assert 0.01 < association.min() < 0.49


@pytest.mark.parametrize("temperature", [None, 7.0, "mean"])
@pytest.mark.parametrize("variance", [1.0, 3.0])
def test_numbers_of_newcomers_against_all_pairs_by_hand(temperature, variance):
    run, (few, _), (x, _) = run_of_numbers(), samples(3), samples(4, seed=1)
    targets = np.random.default_rng(3).normal(size=(3, 3))
    noise = {None: variance, "mean": 3.0}.get(temperature, temperature)
    pairs = []
    for hypothesis, order in zip(run.hypotheses, renamed(run.hypotheses), strict=True):
        for cluster, posterior in enumerate(hypothesis.clusters):
            flat = posterior.mean(NUMBERS).double().numpy()
            means, outputs = (z @ flat[:6].reshape(3, 2).T + flat[6:] for z in (few, x))
            logs = stats.norm(means, noise**0.5).logpdf(targets).sum()
            weight = hypothesis.log_weight - np.log(2) + logs
            pairs.append((weight, order[cluster], outputs, hypothesis.association.labels, cluster))
    weights = np.exp([weight - logsumexp([pair[0] for pair in pairs]) for weight, *_ in pairs])
    association, together = np.zeros(2), np.zeros(4)
    for weight, (_, place, _, labels, cluster) in zip(weights, pairs, strict=True):
        association[place] += weight
        together += weight * (labels == cluster)
    outputs = np.stack([pair[2] for pair in pairs])
    mean = np.tensordot(weights, outputs, 1)
    rule = bcfl.PredictionRule(temperature=variance)
    found = run.predict_new_values(x, (few, targets), rule, temperature=temperature)
    np.testing.assert_allclose(found.association, association, rtol=1e-5)
    np.testing.assert_allclose(found.co_association, together, rtol=1e-5)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-5)
    spread = np.tensordot(weights, (outputs - mean) ** 2, 1)
    np.testing.assert_allclose(found.association_variance, spread, rtol=1e-4)
    np.testing.assert_allclose(found.variance, variance + spread, rtol=1e-4)
    assert 0.001 < association.min() < 0.49


def test_numbers_of_one_output_need_no_column():
    run = replace(known_run(), model=linear(8, 1, "gaussian"))
    x, y = np.random.default_rng(0).normal(size=(2, 6, 8)).astype(np.float32)
    row, column = (
        run.predict_new_values(x, (x, values)).association for values in (y[:, 0], y[:, :1])
    )
    np.testing.assert_array_equal(row, column)


def test_newcomers_against_a_pyro_program():
    """Pyro draws the models from our mixture, then a cluster, and weighs them by the samples."""
    run, (few, classes) = known_run(), samples(5)
    prior, x, y = run.to_pyro(), torch.from_numpy(few), torch.from_numpy(classes)

    def program():
        models = pyro.sample("models", prior)
        cluster = pyro.sample("cluster", dist.Categorical(torch.ones(2)))
        weights = models[cluster]
        logits = x @ weights[:6].view(3, 2).T + weights[6:]
        with pyro.plate("samples", len(y)):
            pyro.sample("class", dist.Categorical(logits=logits), obs=y)

    pyro.set_rng_seed(0)
    importance = pyro.infer.Importance(program, num_samples=2000).run()
    weights = importance.get_normalized_weights()
    clusters = torch.stack([t.nodes["cluster"]["value"] for t in importance.exec_traces])
    found = run.predict_new(few, (few, classes)).association
    assert float(weights[clusters == 0].sum()) == pytest.approx(found[0], abs=0.04)


def test_a_pyro_prior_scores_tuples_of_matched_models():
    run = known_run(precision=2.0)
    prior = run.hypotheses.to_pyro()
    assert tuple(prior.event_shape) == (2, 9)
    point = np.random.default_rng(2).normal(size=(2, 9))
    logs = []
    for hypothesis, order in zip(run.hypotheses, renamed(run.hypotheses), strict=True):
        density = hypothesis.log_weight
        for cluster, posterior in enumerate(hypothesis.clusters):
            mean = posterior.mean(MODEL).numpy()
            density += stats.norm(mean, 2**-0.5).logpdf(point[order[cluster]]).sum()
        logs.append(density)
    found = float(prior.log_prob(torch.from_numpy(point).float()))
    assert found == pytest.approx(logsumexp(logs), rel=1e-5)
    assert len({tuple(order) for order in renamed(run.hypotheses)}) == 2


def test_hypotheses_with_other_numbers_of_clusters_are_chosen_by_name():
    run = known_run()
    two = run.hypotheses.hypotheses
    wide = bcfl.Hypothesis(
        clusters=(*two[0].clusters, two[1].clusters[0]),
        association=bcfl.Association(NAMES, np.array([0, 1, 2, 2]), 3),
    )
    mixed = bcfl.HypothesisSet.weighted([*two, wide], 1, 0.0)
    with pytest.raises(ValueError, match=r"num_clusters must choose one of \[2, 3\]"):
        mixed.to_pyro()
    with pytest.raises(ValueError, match=r"num_clusters must be one of \[2, 3\], got 4"):
        mixed.to_pyro(num_clusters=4)
    point = torch.zeros(2, 9)
    chosen = mixed.to_pyro(num_clusters=2).log_prob(point)
    torch.testing.assert_close(chosen, run.to_pyro().log_prob(point))
    assert tuple(mixed.to_pyro(num_clusters=3).event_shape) == (3, 9)


def test_newcomers_join_their_group_and_are_predicted_like_its_members(digits_clients):
    clients = digits_clients([60] * 14)
    members, newcomers = clients[:10], clients[10:]
    settings = dict(num_clusters=2, objective=bcfl.Objective(local_steps=20, batch_size=32))
    method = bcfl.methods.build("bcfl-mh-3", **settings)
    run = bcfl.Federation(members, mlp(64, 16, 10), method, seed=1).run(10)

    def scored(data, prediction):
        return (prediction.mean.argmax(1) == data.views["test"].targets.numpy()).mean()

    cluster_of, accuracies, new = {}, [], []
    for data in members:
        prediction = run.predict(data.client, data.views["test"].inputs)
        cluster_of.setdefault(data.group, set()).add(int(prediction.association.argmax()))
        accuracies.append(scored(data, prediction))
    assert all(len(clusters) == 1 for clusters in cluster_of.values())
    assert len(set.union(*cluster_of.values())) == 2
    for data in newcomers:
        few = data.views["train"].take(torch.arange(10))
        prediction = run.predict_new(data.views["test"].inputs, (few.inputs, few.targets))
        assert {int(prediction.association.argmax())} == cluster_of[data.group]
        assert prediction.association.max() > 0.99
        new.append(scored(data, prediction))
    assert np.mean(new) > np.mean(accuracies) - 0.1


@pytest.mark.parametrize(
    ("adaptation", "message"),
    [
        ((np.ones((2, 2)), np.array([0, 3])), "one class from 0 to 2 per sample"),
        ((np.ones((2, 2)), np.array([0])), r"got 2 samples and classes of shape \(1,\)"),
        ((np.ones((2, 2)), np.array([0.0, 1.0])), "float64"),
        ((np.ones((0, 2)), np.array([], dtype=int)), "at least one sample"),
        ((np.ones((0, 2)), []), r"at least one sample.*\(torch\.float64\)$"),
        (
            (np.ones((2, 2)), np.array([0.0, 1.0])),
            r"whole numbers: `numpy\.asarray\(targets, int\)`",
        ),
        (
            (np.ones((2, 5)), np.array([0, 1])),
            r"inputs .* \(samples, 2\), got \(2, 5\)$",
        ),
        ((np.array([0, 1]), np.ones((2, 2))), r"got \(2,\).* seem to be swapped: adaptation=\("),
        ((np.full((2, 2), np.nan), np.array([0, 1])), "inputs must be finite"),
    ],
)
def test_unfit_samples_are_refused(adaptation, message):
    with pytest.raises(ValueError, match=f"^adaptation: .*{message}"):
        known_run().predict_new(np.ones((1, 2)), adaptation)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.ones((2, 2)), r"3 finite numbers per sample, .* got 2 samples and .* \(2, 2\)"),
        (np.ones(2), r"got 2 samples and targets of shape \(2,\)"),
        (np.full((2, 3), np.nan), r"shape \(2, 3\) with NaN or inf"),
        (np.ones((0, 3)), r"got 2 samples and targets of shape \(0, 3\)"),
    ],
)
def test_unfit_numbers_are_refused(targets, message):
    with pytest.raises(ValueError, match=message):
        run_of_numbers().predict_new_values(np.ones((1, 2)), (np.ones((2, 2)), targets))


def test_text_labels_are_told_apart_by_the_classes_of_the_clients():
    (x, numbers), names = samples(4), ["cat", "dog", "fox"]
    text = [names[number] for number in numbers]
    plain, named = known_run(), replace(known_run(), classes=tuple(names))
    wanted = plain.predict_new(x, (x, numbers)).mean
    for run, targets in ((named, text), (named, numbers), (named, np.array(text))):
        assert np.array_equal(run.predict_new(x, (x, targets)).mean, wanted)
    with pytest.raises(TypeError, match=r"^adaptation: .*`\[classes\.index\(label\) for label in"):
        plain.predict_new(x, (x, text))
    with pytest.raises(ValueError, match=r"^adaptation: .* 3 classes .*'cow' in sample 0"):
        named.predict_new(x, (x, ["cow", "cat", "cat", "cat"]))
    tens = replace(plain, classes=(20, 10, 0))
    permuted = [(20, 10, 0)[number] for number in numbers]
    assert np.array_equal(tens.predict_new(x, (x, permuted)).mean, wanted)


def test_of_classes_and_numbers_each_has_its_own_method():
    few = np.ones((2, 2))
    with pytest.raises(ValueError, match=r"predict_new_values needs .*; see predict_new"):
        known_run().predict_new_values(few, (few, np.array([0, 1])))
    with pytest.raises(ValueError, match=r"predict_new needs .*; see predict_new_values"):
        run_of_numbers().predict_new(few, (few, np.ones((2, 3))))


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"temperature must be .*positive.*, got 0"):
        known_run().predict_new(np.ones((1, 2)), samples(3), temperature=0.0)
