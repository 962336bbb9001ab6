from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from bcfl import Federation, Objective, PredictionRule
from bcfl.analysis import uncertainty
from bcfl.data.clients import with_validation
from bcfl.methods import build
from experiments import datasets, models, partitions
from experiments.scores.uncertainty_evaluation import TUNING, UncertaintyEvaluation, scores

KINDS = {
    "ood_score": "auroc",
    "entropy": "auroc_entropy",
    "epistemic": "auroc_knowledge",
}


@pytest.fixture(scope="module")
def evaluation():
    digits = datasets.load("optdigits")
    clients = partitions.rotated(digits, groups=2, clients=6, samples_per_client=50, seed=1)
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=20, batch_size=16, learning_rate=0.1)
    )
    method = build("bcfl-mh-3", **settings)
    federation = Federation(clients, models.mlp((1, 8, 8), 8, 10), method, evaluate=False)
    return UncertaintyEvaluation(federation.run(4), federation.clients, 1)


def rows(inputs):
    return {tuple(one.flatten().tolist()) for one in inputs}


def test_samples_for_tuning_are_a_third_and_not_scored(evaluation):
    for before, after in zip(evaluation.clients, evaluation.tested, strict=True):
        tuning, scored = after.views[TUNING], after.views["test"]
        assert len(tuning) == len(before.views["test"]) // 3
        assert not rows(tuning.inputs) & rows(scored.inputs)
        both = rows(tuning.inputs) | rows(scored.inputs)
        assert both == rows(before.views["test"].inputs)


def test_validation_samples_tune_and_all_test_samples_are_scored(evaluation):
    held_out = [with_validation(data, 0.3, 1) for data in evaluation.clients]
    for before, after in zip(
        held_out, UncertaintyEvaluation(evaluation.run, held_out, 1).tested, strict=True
    ):
        assert after.views[TUNING] is before.views["validation"]
        assert after.views["test"] is before.views["test"]


def test_samples_and_groups_of_a_stream_are_those_of_its_last_step():
    digits, method = datasets.load("optdigits"), build("ifca", num_clusters=2)
    stream = partitions.stream(digits, clients=4, steps=3, order="multi-task", seed=1)
    run = Federation(stream, models.mlp((1, 8, 8), 8, 10), method).run(3)
    last = UncertaintyEvaluation(run, stream, 1)
    assert (last.time_step, last.num_steps) == (2, 3)
    latest = {client: concepts[2] for client, concepts in stream.concepts.items()}
    assert last._source == latest
    for before, after in zip(stream, last.tested, strict=True):
        both = rows(after.views[TUNING].inputs) | rows(after.views["test"].inputs)
        assert both == rows(before.views["test:2"].inputs)
        others = [
            d.views["test"].inputs for d in last.tested if latest[d.client] != latest[before.client]
        ]
        assert rows(last._ood_inputs(after, 5)) <= rows(torch.cat(others))


def test_predictions_are_those_of_the_mixture_that_serves_the_client(evaluation):
    predictions = evaluation.predictions(PredictionRule(temperature=2.0))
    assert list(predictions) == list(evaluation.run.clients)
    for data in evaluation.tested:
        view, found = data.views["test"], predictions[data.client]
        expected = evaluation.run.predict(data.client, view.inputs, PredictionRule(temperature=2.0))
        np.testing.assert_allclose(found.probabilities, expected.mean, rtol=1e-5)
        np.testing.assert_allclose(found.own.entropy, expected.entropy, rtol=1e-4)
        assert found.targets.tolist() == view.targets.tolist()


def test_out_of_distribution_samples_are_of_other_groups(evaluation):
    of_group = {
        group: rows(
            torch.cat([d.views["test"].inputs for d in evaluation.tested if d.group == group])
        )
        for group in (0, 1)
    }
    for data in evaluation.tested:
        ood = rows(evaluation._ood_inputs(data, 5))
        assert len(ood) == 5
        assert ood <= of_group[1 - data.group]
    unknown = UncertaintyEvaluation(replace(evaluation.run, groups={}), evaluation.clients, 1)
    clusters = evaluation.run.hypotheses.best.association.labels
    for row, data in enumerate(unknown.tested):
        allowed = [
            other.views["test"].inputs
            for other, cluster in zip(unknown.tested, clusters, strict=True)
            if cluster != clusters[row]
        ]
        assert rows(unknown._ood_inputs(data, 4)) <= rows(torch.cat(allowed))


def test_parts_hold_each_client_once(evaluation):
    clusters = evaluation.run.hypotheses.best.association.labels
    assert evaluation.parts("all") == {"all": list(evaluation.run.clients)}
    assert evaluation.parts("client") == {name: [name] for name in evaluation.run.clients}
    expected = {
        f"cluster {k}": [
            c for c, one in zip(evaluation.run.clients, clusters, strict=True) if one == k
        ]
        for k in sorted(set(clusters.tolist()))
    }
    assert evaluation.parts("cluster") == expected


def test_parts_are_of_clusters_of_the_leading_hypothesis_whatever_is_believed(evaluation):
    state = evaluation.run.state
    doubting = tuple(
        replace(hypothesis, belief=0.9 - 0.8 * hypothesis.association.serving)
        for hypothesis in state.hypotheses
    )
    state = replace(state, hypotheses=replace(state.hypotheses, hypotheses=doubting))
    doubtful = replace(evaluation, run=replace(evaluation.run, state=state))
    labels = doubtful.run.hypotheses.best.association.labels
    assert (doubtful.run.association_probabilities().argmax(1) != labels).any()
    assert doubtful.parts("cluster") == evaluation.parts("cluster")


def test_scores_are_those_of_all_samples_of_a_part(evaluation):
    predictions = evaluation.predictions(
        PredictionRule(predictive="monte-carlo", prior_precision=100.0, num_draws=8)
    )
    found = scores(predictions, evaluation.parts("cluster"))
    for part, clients in evaluation.parts("cluster").items():
        some = [predictions[client] for client in clients]
        probabilities = np.concatenate([one.probabilities for one in some])
        targets = np.concatenate([one.targets for one in some])
        assert found[part]["nll"] == pytest.approx(uncertainty.nll(probabilities, targets))
        for source, field in (("ood", "ood"), ("noise", "noise")):
            for kind, name in KINDS.items():
                inside = np.concatenate([getattr(one.own, kind) for one in some])
                outside = np.concatenate([getattr(getattr(one, field), kind) for one in some])
                labels = np.repeat([0, 1], [len(inside), len(outside)])
                expected = roc_auc_score(labels, np.concatenate([inside, outside]))
                assert found[part][f"{source}_{name}"] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["plug-in", "linearised"])
def test_tuning_lowers_the_loss_of_the_tuning_samples(evaluation, name):
    def loss(rule):
        total = 0.0
        for data in evaluation.tested:
            view = data.views[TUNING]
            p = evaluation.run.predict(data.client, view.inputs, rule).mean
            total -= np.log(p[np.arange(len(view)), view.targets.numpy()]).sum()
        return total

    rule = PredictionRule(predictive=name, temperature=4.0, num_draws=16)
    best = evaluation.tuned(rule)
    assert loss(best) < loss(rule) - 0.5
    assert best.temperature < 4.0
    assert (best.prior_precision is None) == (name == "plug-in")
