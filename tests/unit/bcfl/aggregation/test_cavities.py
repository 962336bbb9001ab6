"""Cavities with running statistics, shared blocks, executors, merging and checkpoints."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Federation, Objective, checkpoint
from bcfl.aggregation.crossfit import folds_of
from bcfl.hypotheses.posterior import weighted_mean
from bcfl.methods import build
from bcfl.policies import candidate
from bcfl.policies.policy import cluster_shares
from bcfl.protocol import Train
from bcfl.protocol.regularizers import Contrast, Sharing
from posteriors import pool_running_statistics

OBJECTIVE = Objective(local_steps=3, batch_size=4)


WAYS = ("cavity", "crossfit")


def run_of(clients, model, name="ifca", rounds=3, scored_by="cavity", **options):
    executor = options.pop("executor", "auto")
    method = build(name, num_clusters=2, scored_by=scored_by, objective=OBJECTIVE, **options)
    return Federation(clients, model, method, device="cpu", executor=executor).run(rounds)


def test_running_statistics_are_pooled_over_the_others(clients, batch_norm):
    """With two members, the cavity of one has the statistics that the other has trained."""
    run = run_of(clients, batch_norm, rounds=2)
    best = run.hypotheses.best
    for cluster, posterior in enumerate(best.clusters):
        members = [c for c, k in best.cavities if k == cluster]
        if len(members) < 2:
            continue
        statistics = {c: best.cavities[c, cluster].buffers(run.model) for c in members}
        sizes = {data.client: len(data.views["train"]) for data in clients}
        if len(members) == 2:
            first, second = members
            own = torch.stack([statistics[second], statistics[first]])
            counts = torch.tensor([sizes[first], sizes[second]], dtype=torch.float64)
            width = own.shape[1] // 2
            mean, variance = pool_running_statistics(own[:, :4], own[:, 4:8], counts)
            assert width >= 4
            torch.testing.assert_close(posterior.buffers(run.model)[:4], mean)
            torch.testing.assert_close(posterior.buffers(run.model)[4:8], variance)


class Silent:
    """An executor of which a client trains in all rounds but one."""

    name = "silent"

    def __init__(self, executor, client, round):
        self.executor, self.client, self.round = executor, client, round

    def answer(self, requests, models, round):
        outcomes = self.executor.answer(requests, models, round)
        return {
            request: outcome
            for request, outcome in outcomes.items()
            if (round, request.client, type(request)) != (self.round, self.client, Train)
        }


@pytest.mark.parametrize("name", ["bcfl-g", "ifca", "ifca-median", "ifca-fedopt"])
def test_a_cavity_is_the_model_of_a_round_in_which_the_client_does_not_train(
    name, clients, batch_norm
):
    method = build(name, num_clusters=2, scored_by="cavity", objective=OBJECTIVE)
    federation = Federation(clients, batch_norm, method, device="cpu")
    best = federation.run(3).hypotheses.best
    for (client, index), cavity in best.cavities.items():
        silent = Silent(federation.executor_of(3), client, 2)
        (block,) = federation.run(3, executor=silent).hypotheses.best.clusters[index].blocks
        (ours,) = cavity.blocks
        torch.testing.assert_close(ours.gaussian.mean, block.gaussian.mean)
        torch.testing.assert_close(ours.gaussian.precision, block.gaussian.precision)
        torch.testing.assert_close(ours.buffers, block.buffers)


def test_blocks_that_all_clusters_share_stay_in_the_cavity(clients, shared_body):
    best = run_of(clients, shared_body).hypotheses.best
    assert best.cavities
    for (_, cluster), cavity in best.cavities.items():
        (head, body), (own_head, own_body) = cavity.blocks, best.clusters[cluster].blocks
        assert body is own_body
        assert head.key != own_head.key


@pytest.mark.parametrize("scored_by", WAYS)
@pytest.mark.parametrize("name", ["ifca", "bcfl-g", "bcfl-c-2", "bcfl-mh-3", "bcfl-mht-3"])
def test_executors_agree(name, scored_by, clients, batch_norm, linear):
    for model in (linear, batch_norm):
        loop, batched = (
            run_of(clients, model, name, executor=executor, scored_by=scored_by).hypotheses.best
            for executor in ("loop", "batched")
        )
        assert loop.association.labels.tolist() == batched.association.labels.tolist()
        assert loop.cavities.keys() == batched.cavities.keys()
        for place, cavity in loop.cavities.items():
            torch.testing.assert_close(
                cavity.mean(model), batched.cavities[place].mean(model), rtol=1e-3, atol=1e-4
            )


@pytest.mark.parametrize("scored_by", WAYS)
@pytest.mark.parametrize("name", ["ifca", "bcfl-c-2", "bcfl-mht-3", "bcfl-race-2"])
def test_a_resumed_run_has_the_same_bits(name, scored_by, clients, linear, tmp_path):
    whole = run_of(clients, linear, name, rounds=4, scored_by=scored_by)
    method = build(name, num_clusters=2, scored_by=scored_by, objective=OBJECTIVE)
    federation = Federation(clients, linear, method, device="cpu")
    half = federation.run(2, planned_rounds=4)
    loaded = checkpoint.load(checkpoint.save(half.state, tmp_path))
    resumed = federation.run(4, state=loaded)
    first, second = whole.hypotheses.best, resumed.hypotheses.best
    assert first.cavities.keys() == second.cavities.keys()
    for one, other in zip(first.clusters, second.clusters, strict=True):
        assert torch.equal(one.mean(linear), other.mean(linear))
    np.testing.assert_array_equal(first.belief, second.belief)
    np.testing.assert_array_equal(
        whole.association_probabilities(), resumed.association_probabilities()
    )


def test_joint_evidence_has_no_cavities():
    with pytest.raises(ValueError, match="scored_by must be 'cluster' with joint evidence"):
        build("bcfl-g", scored_by="cavity", evidence="joint", temperature=1.0)


def test_beliefs_are_softmax_rows_of_the_scores(clients, linear):
    hypotheses = run_of(clients, linear, "bcfl-g", temperature=1.0).hypotheses
    belief = hypotheses.best.belief
    np.testing.assert_allclose(belief.sum(axis=1), 1)
    assert ((belief > 0) & (belief < 1)).any()
    np.testing.assert_array_equal(hypotheses.association_probabilities(), belief)
    together = hypotheses.co_association()
    np.testing.assert_allclose(together[0, 1], belief[0] @ belief[1])
    np.testing.assert_array_equal(np.diag(together), 1)


@pytest.mark.parametrize("scored_by", WAYS)
def test_clusters_are_split_while_clients_are_absent(scored_by, make_client, linear):
    """Proposals are charged for the costs of absent clients, which have no belief temperature."""
    several = [make_client(f"c{i}", 8 + i, i % 2) for i in range(16)]
    method = build(
        "bcfl-mht-3", num_clusters=3, scored_by=scored_by, temperature="mean", objective=OBJECTIVE
    )
    hypotheses = Federation(several, linear, method, client_fraction=0.6).run(4).hypotheses
    assert hypotheses.proposals
    assert all(proposal.belief is None for proposal in hypotheses.proposals)
    np.testing.assert_allclose(hypotheses.best.belief.sum(axis=1), 1)


def test_folds_are_pulled_towards_models_of_their_own(clients, linear):
    """A mean over clusters that all clients trained would tell a fold of those it leaves out."""
    best = run_of(clients, linear, scored_by="crossfit").hypotheses.best
    labels = {client: best.association.label(client) for client in best.association.clients}
    samples = {data.client: len(data.views["train"]) for data in clients}
    pulled = replace(OBJECTIVE, regularizers=(Sharing(), Contrast()))
    chosen = candidate(best, labels, pulled, num_samples=samples)
    shares = cluster_shares(best.association, samples)
    for fold in folds_of(best, replace(chosen, folds=4), 0, samples):
        own = fold.parent.clusters
        mean = weighted_mean(own, shares).key
        assert mean in {posterior.key for posterior in fold.candidate.models}
        for training in fold.candidate.trainings:
            others = tuple(p.key for p in own if p.key != training.start)
            assert training.references == ((mean,), others)


@pytest.mark.parametrize(("scored_by", "kept"), [("cluster", 0), ("cavity", 1), ("crossfit", 2)])
def test_a_warm_up_leaves_the_cavities_that_the_next_round_scores(scored_by, kept, clients, linear):
    """In the first round all folds train from one model, so that they need no further training."""
    run = run_of(clients, linear, "ifca-w", rounds=1, scored_by=scored_by, warm_up_rounds=1)
    best = run.hypotheses.best
    assert len(best.cavities) == kept * len(clients)
    assert best.scored_by_cavities == (kept > 0)
    assert run.records[0].ledger.trainings_run == len(clients)


@pytest.mark.parametrize("temperature", ["mean", 1.0])
def test_without_evidence_a_belief_is_the_prior(temperature, clients, linear):
    """Belief temperatures divide losses; that a client stays with .9 is no evidence."""
    options = {"staying": 0.9, "temperature": temperature, "belief_temperature": 1e12}
    belief = run_of(clients, linear, "bcfl-g", rounds=2, **options).hypotheses.best.belief
    np.testing.assert_allclose(belief.max(axis=1), 0.9)
