from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from bcfl import Federation, Objective, PredictionRule
from bcfl.data.clients import with_validation
from bcfl.methods import build
from experiments import datasets, models, partitions
from experiments.scores import uncertainty
from experiments.scores.trial import TUNING, UncertaintyEvaluation, scores

KINDS = {
    "ood_score": "auroc",
    "entropy": "auroc_entropy",
    "knowledge": "auroc_knowledge",
}


@pytest.fixture(scope="module")
def trial():
    digits = datasets.load("optdigits")
    clients = partitions.rotated(digits, groups=2, clients=6, samples_per_client=50, seed=1)
    settings = dict(num_clusters=2, objective=Objective(20, 16, learning_rate=0.1))
    method = build("bcfl-mh-3", **settings)
    federation = Federation(clients, models.mlp((1, 8, 8), 8, 10), method, evaluate=False)
    return UncertaintyEvaluation(federation.run(4), federation.data, 1)


def rows(inputs):
    return {tuple(one.flatten().tolist()) for one in inputs}


def test_samples_for_tuning_are_a_third_and_not_scored(trial):
    for before, after in zip(trial.clients, trial.divided, strict=True):
        tuning, scored = after.views[TUNING], after.views["test"]
        assert len(tuning) == len(before.views["test"]) // 3
        assert not rows(tuning.inputs) & rows(scored.inputs)
        both = rows(tuning.inputs) | rows(scored.inputs)
        assert both == rows(before.views["test"].inputs)


def test_samples_that_were_set_aside_tune_and_all_test_samples_are_scored(trial):
    held_out = [with_validation(data, 0.3, 1) for data in trial.clients]
    for before, after in zip(
        held_out, UncertaintyEvaluation(trial.run, held_out, 1).divided, strict=True
    ):
        assert after.views[TUNING] is before.views["validation"]
        assert after.views["test"] is before.views["test"]


def test_outcomes_are_predictions_of_the_mixture_that_serves_the_client(trial):
    outcomes = trial.outcomes(PredictionRule(temperature=2.0))
    assert list(outcomes) == list(trial.run.clients)
    for data in trial.divided:
        view, found = data.views["test"], outcomes[data.client]
        expected = trial.run.predict(data.client, view.inputs, PredictionRule(temperature=2.0))
        np.testing.assert_allclose(found.probabilities, expected.mean, rtol=1e-5)
        np.testing.assert_allclose(found.own.entropy, expected.entropy, rtol=1e-4)
        assert found.targets.tolist() == view.targets.tolist()


def test_strange_samples_are_of_other_groups(trial):
    of_group = {
        group: rows(torch.cat([d.views["test"].inputs for d in trial.divided if d.group == group]))
        for group in (0, 1)
    }
    for data in trial.divided:
        strange = rows(trial._strange(data, 5))
        assert len(strange) == 5
        assert strange <= of_group[1 - data.group]
    unknown = UncertaintyEvaluation(trial.run, [replace(d, group=None) for d in trial.clients], 1)
    clusters = trial.run.association_probabilities().argmax(1)
    for row, data in enumerate(unknown.divided):
        allowed = [
            other.views["test"].inputs
            for other, cluster in zip(unknown.divided, clusters, strict=True)
            if cluster != clusters[row]
        ]
        assert rows(unknown._strange(data, 4)) <= rows(torch.cat(allowed))


def test_parts_hold_each_client_once(trial):
    clusters = trial.run.association_probabilities().argmax(1)
    assert trial.parts("all") == {"all": list(trial.run.clients)}
    assert trial.parts("client") == {name: [name] for name in trial.run.clients}
    expected = {
        f"cluster {k}": [c for c, one in zip(trial.run.clients, clusters, strict=True) if one == k]
        for k in sorted(set(clusters.tolist()))
    }
    assert trial.parts("cluster") == expected


def test_scores_are_those_of_all_samples_of_a_part(trial):
    outcomes = trial.outcomes(PredictionRule("monte-carlo", prior_precision=100.0, num_draws=8))
    found = scores(outcomes, trial.parts("cluster"))
    for part, clients in trial.parts("cluster").items():
        some = [outcomes[client] for client in clients]
        probabilities = np.concatenate([one.probabilities for one in some])
        targets = np.concatenate([one.targets for one in some])
        assert found[part]["nll"] == pytest.approx(uncertainty.nll(probabilities, targets))
        for source in ("strange", "noise"):
            for kind, name in KINDS.items():
                inside = np.concatenate([getattr(one.own, kind) for one in some])
                outside = np.concatenate([getattr(getattr(one, source), kind) for one in some])
                labels = np.repeat([0, 1], [len(inside), len(outside)])
                expected = roc_auc_score(labels, np.concatenate([inside, outside]))
                assert found[part][f"{source}_{name}"] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["plug-in", "linearised"])
def test_tuning_pays_on_the_samples_for_tuning(trial, name):
    def loss(rule):
        total = 0.0
        for data in trial.divided:
            view = data.views[TUNING]
            p = trial.run.predict(data.client, view.inputs, rule).mean
            total -= np.log(p[np.arange(len(view)), view.targets.numpy()]).sum()
        return total

    rule = PredictionRule(name, temperature=4.0, num_draws=16)
    best = trial.tuned(rule)
    assert loss(best) < loss(rule) - 0.5
    assert best.temperature < 4.0
    assert (best.prior_precision is None) == (name == "plug-in")
