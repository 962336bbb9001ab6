"""Beliefs recorded after a round: posterior memberships that leave no trace in training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from bcfl import Federation, Objective, checkpoint, drive
from bcfl.policies.capacity import ClusterSize
from bcfl.rounds.beliefs import fits_cavities, has_unknown_membership, with_beliefs
from tests.recipes import built

OBJECTIVE = Objective(local_steps=3, batch_size=4)
NAMES = ["ifca", "fesem", "wecfl", "bcfl-g", "bcfl-c-2", "bcfl-mh-2", "bcfl-mht-2"]


def federation_of(clients, model, name="ifca", **arguments):
    options = arguments.pop("options", {})
    method = built(name, num_clusters=2, objective=OBJECTIVE, **options)
    return Federation(clients, model, method, device="cpu", **arguments)


def trained(run):
    return [p.mean(run.model) for h in run.hypotheses for p in h.clusters]


@pytest.mark.parametrize("name", NAMES)
def test_training_and_what_it_costs_do_not_depend_on_recorded_beliefs(name, clients, linear):
    federation = federation_of(clients, linear, name)
    recorded = federation.run(4, belief_every=1)
    federation.method = replace(federation.method, belief_temperature=None)
    plain = federation.run(4)
    assert all(map(torch.equal, trained(recorded), trained(plain)))
    assert recorded.hypotheses.log_weights.tolist() == plain.hypotheses.log_weights.tolist()
    for one, other in zip(recorded.records, plain.records, strict=True):
        assert one.belief_ledger is not None
        assert other.belief_ledger is None
        unequal = {"seconds": None, "releases": None}  # scores for beliefs are releases too
        counts = [{**vars(record.ledger), **unequal} for record in (one, other)]
        assert counts[0] == counts[1]


@pytest.mark.parametrize("name", NAMES)
def test_no_beliefs_are_recorded_with_zero(name, clients, linear):
    federation = federation_of(clients, linear, name)
    recorded, plain = federation.run(3), federation.run(3, belief_every=0)
    assert all(map(torch.equal, trained(recorded), trained(plain)))
    assert all(record.belief_ledger is None for record in plain.records)
    for hypothesis in plain.hypotheses:
        assert hypothesis.belief is None
        assert not hypothesis.cavities
    best = plain.hypotheses.best.association
    if len(plain.hypotheses.hypotheses) == 1:
        np.testing.assert_array_equal(plain.association_probabilities(), best.serving)


def test_a_run_that_stops_is_not_computed_twice_where_no_beliefs_are_recorded(clients, linear):
    federation = federation_of(clients, linear)
    seen = []

    class Counting:
        def answer(self, requests, models, round):
            seen.extend((round, type(request).__name__) for request in requests)
            return federation.engine.answer(requests, models, round)

    stops = lambda state, _: state.round == 2  # noqa: E731
    run = federation.run(5, on_round=stops, belief_every=0, executor=Counting())
    assert run.state.round == 2
    assert run.hypotheses.best.belief is None
    assert seen.count((1, "Train")) == len(clients)


@pytest.mark.parametrize("name", NAMES)
def test_every_hypothesis_has_a_belief_after_the_last_round(name, clients, linear):
    hypotheses = federation_of(clients, linear, name).run(2).hypotheses
    for hypothesis in hypotheses:
        np.testing.assert_allclose(hypothesis.belief.sum(axis=1), 1)
        assert ((hypothesis.belief > 0) & (hypothesis.belief < 1)).all()
        assert not hypothesis.cavities


def test_a_belief_is_the_posterior_under_the_cavity_of_the_own_cluster(clients, linear):
    """With one round from a common start, the cavity is the mean of the others' local models."""
    federation = federation_of(clients, linear, "wecfl")
    best = federation.run(1).hypotheses.best
    alone = [
        federation_of([data], linear, "local", seed=0).run(1).hypotheses.best.clusters[0]
        for data in federation.clients
    ]
    labels = best.association.labels
    sizes = np.array([len(data.views["train"]) for data in federation.clients], dtype=float)
    for row, data in enumerate(federation.clients):
        losses = []
        for cluster in range(2):
            members = [i for i in np.flatnonzero(labels == cluster) if i != row]
            if not members:
                mean = federation.initial_state().hypotheses.best.clusters[0].mean(linear)
            else:
                weights = torch.tensor(sizes[members] / sizes[members].sum())
                stacked = torch.stack([alone[i].mean(linear).double() for i in members])
                mean = (weights[:, None] * stacked).sum(0)
            network = linear.network(mean.float(), best.clusters[0].buffers(linear))
            view = data.views["train"]
            with torch.no_grad():
                loss = cross_entropy(network(view.inputs), view.targets, reduction="sum")
                losses.append(float(loss))
        expected = np.exp(-np.array(losses) / federation.method.belief_temperature)
        np.testing.assert_allclose(best.belief[row], expected / expected.sum(), rtol=1e-4)


def test_the_exchange_has_a_ledger_of_its_own(clients, linear):
    first, last = federation_of(clients, linear).run(2).records
    assert first.belief_ledger is None
    ledger = last.belief_ledger
    assert (ledger.exchanges, ledger.trainings_run) == (1, 0)
    assert ledger.scores_run == len(clients) * 2
    assert ledger.bytes_up == len(clients) * 2 * 8


@pytest.mark.parametrize("name", ["ifca", "wecfl", "bcfl-mht-2"])
def test_opened_checkpoints_answer_as_the_run_does(name, clients, linear, tmp_path):
    run = federation_of(clients, linear, name).run(3, belief_every=2)
    loaded = checkpoint.load(checkpoint.save(run.state, tmp_path))
    for mine, theirs in zip(run.hypotheses, loaded.hypotheses, strict=True):
        np.testing.assert_array_equal(mine.belief, theirs.belief)
    np.testing.assert_array_equal(
        run.hypotheses.co_association(), loaded.hypotheses.co_association()
    )
    first, second, third = loaded.history
    assert first.beliefs[0] is None
    for kept, snapshot in zip(run.state.history[1:], (second, third), strict=True):
        np.testing.assert_array_equal(kept.beliefs[0], snapshot.beliefs[0])


@pytest.mark.parametrize("name", ["ifca", "bcfl-g-w", "bcfl-mht-2", "bcfl-race-2"])
def test_a_run_in_parts_has_the_same_bits_and_beliefs(name, clients, linear, tmp_path):
    federation = federation_of(clients, linear, name, client_fraction=0.5)
    whole = federation.run(4)
    half = federation.run(2, planned_rounds=4)
    assert half.hypotheses.best.belief is not None
    states_its_own = name == "bcfl-race-2"  # in each round after the warm-up
    assert (half.state.history[-1].beliefs[0] is not None) == states_its_own
    resumed = federation.run(4, state=checkpoint.load(checkpoint.save(half.state, tmp_path)))
    assert all(map(torch.equal, trained(whole), trained(resumed)))
    for one, other in zip(whole.state.history, resumed.state.history, strict=True):
        for mine, theirs in zip(one.beliefs, other.beliefs, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(
        whole.association_probabilities(), resumed.association_probabilities()
    )


def test_bounds_on_sizes_hold_in_expectation(clients, linear):
    options = {"cluster_size": (2, 2)}
    best = federation_of(clients, linear, options=options).run(2).hypotheses.best
    np.testing.assert_allclose(best.belief.sum(axis=0), 2)


def test_clients_that_do_not_answer_keep_their_association(clients, linear):
    federation = federation_of(clients, linear, "wecfl")
    run = federation.run(2)
    bare = replace(run.hypotheses.best, belief=None)
    hypotheses = replace(run.hypotheses, hypotheses=(bare,))
    silent = drive(with_beliefs(hypotheses, run.clients, "mean", ClusterSize()), lambda r: None)
    assert silent.best.belief is None
    some = with_beliefs(hypotheses, run.clients[1:], "mean", ClusterSize())
    belief = run.ask(some).best.belief
    np.testing.assert_array_equal(belief[0], bare.association.serving[0])
    assert ((belief[1:] > 0) & (belief[1:] < 1)).all()


def test_a_client_never_seen_is_not_asked(clients, linear):
    federation = federation_of(clients, linear, client_fraction=0.25)
    run = federation.run(1)
    (row,) = np.flatnonzero(run.hypotheses.best.belief.any(axis=1))
    assert run.records[0].participants == (run.clients[row],)


@pytest.mark.parametrize("name", ["fedavg", "local", "fedavg-plus", "fedsoft", "fedavg+fedprox"])
def test_methods_whose_clusters_are_no_groups_record_none(name, clients, linear):
    method = built(name, objective=OBJECTIVE)
    run = Federation(clients, linear, method, device="cpu").run(1)
    assert run.hypotheses.best.belief is None


def test_private_parts_are_not_scored(clients, shared_body):
    """Of a model of which a part stays with its client, the server knows no score."""
    head, body = shared_body.blocks
    private = replace(shared_body, blocks=(replace(head, scope="client"), body))
    run = federation_of(clients, private).run(1)
    assert run.records[0].belief_ledger is None


def test_a_stated_belief_is_kept(clients, linear):
    run = federation_of(clients, linear, options={"scored_by": "cavity"}).run(2)
    assert run.hypotheses.best.scored_by_cavities
    assert run.hypotheses.best.cavities
    assert not has_unknown_membership(run.hypotheses.best)
    assert run.records[-1].belief_ledger.scores_run == 0


def test_cavities_of_large_federations_are_not_held(linear):
    assert fits_cavities(linear, 1000, 8)
    assert not fits_cavities(linear, 2**24, 8)


@pytest.mark.parametrize("temperature", [0, -1.0, float("inf"), "auto"])
def test_a_temperature_is_mean_or_positive(temperature, clients, linear):
    method = built("ifca", num_clusters=2)
    with pytest.raises(ValueError, match="belief_temperature must be 'mean'"):
        replace(method, belief_temperature=temperature)


def test_beliefs_every_few_rounds_need_a_number_of_rounds(clients, linear):
    with pytest.raises(
        ValueError, match="belief_every must be a whole number of at least 0 or None, got -1"
    ):
        federation_of(clients, linear).run(1, belief_every=-1)
