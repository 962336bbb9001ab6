"""`-finetune`: after the last rounds clients train on from what serves them, in plain numpy."""

import numpy as np
import pytest
import torch

import bcfl
from tests.oracle.bcfl.methods import paper_methods as paper
from tests.recipes import built

SIZES, ROUNDS = (20, 33, 12, 41, 9), 4
SIZE = paper.CLASSIFIER.stop


@pytest.fixture
def run(turned_clients):
    """A run, and each client's training and test samples."""

    def of(name):
        train, test = turned_clients(SIZES), turned_clients((7,) * len(SIZES), seed=1)
        clients = [
            bcfl.ClientData(one.client, {**one.views, "test": other.views["train"]})
            for one, other in zip(train, test, strict=True)
        ]
        objective = bcfl.Objective(
            local_steps=paper.STEPS,
            batch_size=1000,
            learning_rate=paper.RATE,
            momentum=paper.MOMENTUM,
        )
        model = bcfl.Model(
            name="two-layers",
            build=paper.network,
            input_shape=(paper.INPUTS,),
            num_outputs=paper.CLASSES,
        )
        one = bcfl.Federation(
            clients,
            model,
            built(name, num_clusters=2, objective=objective, proximal=paper.RHO),
            seed=3,
            device="cpu",
            dtype=torch.float64,
        )
        views = [
            tuple(
                (d.views[v].inputs.numpy(), d.views[v].targets.numpy()) for v in ("train", "test")
            )
            for d in one.clients
        ]
        return one.run(ROUNDS), views

    return of


def served(run):
    clusters = run.hypotheses.best.clusters
    return [clusters[k].mean(run.model).numpy() for k in run.hypotheses.best.association.labels]


def assert_scored(sums, scores, labels):
    """The sums are those of a network with these logits."""
    chosen = paper.softmax(scores)[np.arange(len(labels)), labels]
    assert sums.nll == pytest.approx(-np.log(chosen).sum(), abs=1e-9)
    confusion = np.zeros((paper.CLASSES, paper.CLASSES), dtype=int)
    np.add.at(confusion, (labels, scores.argmax(axis=1)), 1)
    assert sums.confusion.tolist() == confusion.tolist()


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "ifca", "bcfl-g"])
def test_clients_are_tested_after_finetuning(run, name):
    """Without terms: nothing holds a model back that never returns to the server."""
    tuned, views = run(f"{name}-finetune")
    plain, _ = run(name)
    for mean, other in zip(served(tuned), served(plain), strict=True):
        np.testing.assert_array_equal(mean, other)
    for client, mean, (train, (inputs, labels)) in zip(
        tuned.clients, served(tuned), views, strict=True
    ):
        own = paper.trained(mean, train)
        assert_scored(tuned.records[-1].evaluations[client], paper.logits(own, inputs), labels)
        first = [r.records[0].evaluations[client].nll for r in (tuned, plain)]
        assert first[0] == first[1]
        assert_scored(plain.records[-1].evaluations[client], paper.logits(mean, inputs), labels)


def test_both_networks_of_cam_are_finetuned(run):
    tuned, views = run("ifca-cam-finetune")
    for client, mean, (train, (inputs, labels)) in zip(
        tuned.clients, served(tuned), views, strict=True
    ):
        g, t = mean[:SIZE], mean[SIZE:]
        own = paper.trained(t, train, (), paper.logits(g, train[0]))
        new = paper.trained(g, train, (), paper.logits(own, train[0]))
        scores = paper.logits(new, inputs) + paper.logits(own, inputs)
        assert_scored(tuned.records[-1].evaluations[client], scores, labels)


def test_each_model_of_an_ensemble_is_finetuned(run):
    """Each model trains on alone; then the logits are averaged (Ma 2023, table 7.5)."""
    tuned, views = run("fedavg-plus-finetune")
    models = [cluster.mean(tuned.model).numpy() for cluster in tuned.hypotheses.best.clusters]
    assert len(models) == 2
    for client, (train, (inputs, labels)) in zip(tuned.clients, views, strict=True):
        scores = [paper.logits(paper.trained(mean, train), inputs) for mean in models]
        assert_scored(tuned.records[-1].evaluations[client], np.mean(scores, axis=0), labels)


def test_an_ensemble_of_methods_votes_by_the_mean_of_logits(run):
    """Equation 7.36 of Ma (2023), after a round of fine-tuning of each."""
    for suffix, changed in (("", lambda mean, _: mean), ("-finetune", paper.trained)):
        done, views = run(f"fedavg{suffix}+ifca{suffix}")
        best = done.hypotheses.best
        models = [cluster.mean(done.model).numpy() for cluster in best.clusters]
        for client, (train, (inputs, labels)) in zip(done.clients, views, strict=True):
            two = models[0], models[best.association.label(client)]
            scores = [paper.logits(changed(mean, train), inputs) for mean in two]
            assert_scored(done.records[-1].evaluations[client], np.mean(scores, axis=0), labels)
