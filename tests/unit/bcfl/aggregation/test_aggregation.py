"""Local models become cluster models: weighted means, fused Gaussians, scopes of blocks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Aggregation, Association, Hypothesis, Objective
from bcfl.aggregation.robust import Median
from bcfl.aggregation.server_optimizer import AdaptiveServer
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.policies import Candidate, Continue, candidate
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from posteriors import DiagonalGaussian

OBJECTIVE = Objective()


@pytest.fixture
def parent(linear, newborn):
    clusters = (newborn(linear, 0, 2.0), newborn(linear, 1, 2.0))
    return Hypothesis(clusters=clusters, association=Association.unseen(("a", "b", "c"), 2))


def reply(value, samples=4, curvature=None, size=8, buffers=()):
    curvature = torch.tensor(float(samples)) if curvature is None else torch.tensor(curvature)
    return Trained(
        mean=torch.full((size,), float(value)),
        buffers=torch.tensor(buffers),
        curvature=curvature,
        num_samples=samples,
    )


def combined(aggregation, model, parent, chosen, values, round=0, known=None):
    replies = {t: values[t.client] for t in chosen.trainings if t.client in values}
    clusters, report = aggregation.combine(
        model, parent, chosen, replies, {} if known is None else known, round
    )
    return clusters, report


def test_flat_posteriors_give_the_sample_weighted_mean(linear, parent):
    chosen = candidate(parent, {"a": 0, "b": 0, "c": 1}, OBJECTIVE)
    values = {"a": reply(1, 10), "b": reply(4, 20), "c": reply(7, 5)}
    clusters, report = combined(Aggregation(), linear, parent, chosen, values)
    assert clusters[0].mean(linear).tolist() == [3.0] * 8
    assert clusters[0].precision(linear).tolist() == [32.0] * 8
    assert clusters[1].mean(linear).tolist() == [7.0] * 8
    assert (report.num_floored, report.outside_hull) == (0, 0.0)


def test_weights_of_feeds_count_as_samples_do(linear, parent):
    trainings = tuple(Train(c, parent.clusters[0].key, OBJECTIVE) for c in ("a", "b"))
    chosen = Candidate(
        association=parent.association,
        trainings=trainings,
        contribution_weights=np.array([[0.25, 0.75], [1.0, 0.0]]),
        origins=(Continue(0), Continue(1)),
    )
    values = {"a": reply(0, 4), "b": reply(5, 4)}
    clusters, _ = combined(Aggregation(), linear, parent, chosen, values)
    assert clusters[0].mean(linear).tolist() == [4.0] * 8
    assert clusters[1].mean(linear).tolist() == [0.0] * 8


def test_those_who_did_not_answer_contribute_nothing(linear, parent):
    chosen = candidate(parent, {"a": 0, "b": 0}, OBJECTIVE)
    clusters, _ = combined(Aggregation(), linear, parent, chosen, {"b": reply(4, 20)})
    assert clusters[0].mean(linear).tolist() == [4.0] * 8


def test_an_empty_cluster_keeps_its_mean_and_gets_back_its_first_precision(linear, parent):
    first = candidate(parent, {"a": 0, "b": 1}, OBJECTIVE)
    fed, _ = combined(Aggregation(), linear, parent, first, {"a": reply(1), "b": reply(2)})
    after = Hypothesis(clusters=fed, association=first.association)
    emptying = candidate(after, {"a": 1, "b": 1}, OBJECTIVE)
    clusters, _ = combined(
        Aggregation(), linear, after, emptying, {"a": reply(1), "b": reply(2)}, 1
    )
    assert clusters[0].mean(linear).tolist() == [1.0] * 8
    assert clusters[0].precision(linear).tolist() == [2.0] * 8
    again = Hypothesis(clusters=clusters, association=emptying.association)
    still, _ = combined(Aggregation(), linear, again, emptying, {"a": reply(1)}, 2)
    assert still[0] is clusters[0]


def test_a_cluster_that_was_never_fed_stays_the_same_object(linear, parent):
    chosen = candidate(parent, {"a": 0}, OBJECTIVE)
    clusters, _ = combined(Aggregation(), linear, parent, chosen, {"a": reply(1)})
    assert clusters[1] is parent.clusters[1]


def test_equal_work_gives_one_object_and_other_work_another_key(linear, parent):
    known = {}
    values = {"a": reply(1), "b": reply(2), "c": reply(3)}
    first, _ = combined(
        Aggregation(),
        linear,
        parent,
        candidate(parent, {"a": 0, "b": 1}, OBJECTIVE),
        values,
        0,
        known,
    )
    other, _ = combined(
        Aggregation(),
        linear,
        parent,
        candidate(parent, {"a": 0, "c": 1}, OBJECTIVE),
        values,
        0,
        known,
    )
    assert first[0].blocks[0] is other[0].blocks[0]
    assert first[1].key != other[1].key
    later, _ = combined(
        Aggregation(), linear, parent, candidate(parent, {"a": 0, "b": 1}, OBJECTIVE), values, 1
    )
    assert later[0].key != first[0].key


def test_models_that_were_pulled_elsewhere_give_another_block(linear, parent):
    """Hypotheses that share a cluster may refer to other ones that they do not share."""
    known = {}
    chosen = candidate(parent, {"a": 0}, OBJECTIVE)
    means = []
    for place, keys in enumerate((("first",), ("second",))):
        (training,) = chosen.trainings
        pulled = replace(chosen, trainings=(replace(training, references=(keys,)),))
        answers = {"a": reply(float(place))}
        clusters, _ = combined(Aggregation(), linear, parent, pulled, answers, 0, known)
        means.append(float(clusters[0].mean(linear)[0]))
    assert means[0] != means[1]


@pytest.mark.parametrize(
    ("memory", "decay", "precision"),
    [("replace", 0.9, 2), ("accumulate", 0.9, 14), ("forget", 0.25, 5)],
)
def test_the_memory_decides_the_next_prior(linear, parent, memory, decay, precision):
    chosen = candidate(parent, {"a": 0, "b": 0}, OBJECTIVE)
    aggregation = Aggregation(memory=memory, decay=decay)
    clusters, _ = combined(
        aggregation, linear, parent, chosen, {"a": reply(1, 4), "b": reply(2, 8)}
    )
    assert clusters[0].precision(linear).tolist() == [14.0] * 8
    assert clusters[0].prior_precision(linear).tolist() == [float(precision)] * 8
    block = clusters[0].blocks[0]
    assert torch.equal(block.prior.mean, block.gaussian.mean)


def test_exact_fusion_divides_by_the_prior_that_each_client_was_sent(linear, parent):
    """A client that trained from another cluster's model was sent that cluster's prior."""
    start = parent.clusters[1]
    sent = start.blocks[0].prior
    chosen = candidate(parent, {"a": 0}, OBJECTIVE, starts={"a": start.key})
    clusters, _ = combined(
        Aggregation(fusion="exact"), linear, parent, chosen, {"a": reply(1, 4, curvature=3.0)}
    )
    base = parent.clusters[0].blocks[0].base
    shift = base.precision * base.mean + (2.0 + 3.0) * 1.0 - sent.precision * sent.mean
    torch.testing.assert_close(clusters[0].mean(linear), shift / 5.0)


def test_a_global_block_is_one_object_with_contributions_of_all_clients(shared_body, newborn):
    clusters = tuple(newborn(shared_body, seed) for seed in (0, 1))
    body = clusters[0].blocks[1]
    clusters = (clusters[0], Posterior((clusters[1].blocks[0], body)))
    parent = Hypothesis(clusters=clusters, association=Association.unseen(("a", "b", "c"), 2))
    chosen = candidate(parent, {"a": 0, "b": 0, "c": 1}, OBJECTIVE)
    values = {c: reply(v, n, size=26) for c, v, n in (("a", 1, 10), ("b", 4, 20), ("c", 7, 30))}
    made, _ = combined(Aggregation(), shared_body, parent, chosen, values)
    assert made[0].blocks[1] is made[1].blocks[1]
    assert made[0].blocks[1].gaussian.mean.tolist() == [5.0] * 16
    assert [made[i].blocks[0].gaussian.mean.tolist() for i in (0, 1)] == [[3.0] * 10, [7.0] * 10]
    assert made[0].mean(shared_body).tolist() == [5.0] * 16 + [3.0] * 10


def test_vector_curvatures_are_cut_into_blocks(shared_body, newborn):
    one = newborn(shared_body, 0)
    parent = Hypothesis(clusters=(one,), association=Association.unseen(("a", "b"), 1))
    chosen = candidate(parent, {"a": 0, "b": 0}, OBJECTIVE)
    ramp = torch.linspace(1, 2, 26)
    values = {
        "a": Trained(mean=torch.zeros(26), buffers=torch.empty(0), curvature=ramp, num_samples=1),
        "b": Trained(
            mean=torch.ones(26), buffers=torch.empty(0), curvature=torch.ones(26), num_samples=1
        ),
    }
    (made,), _ = combined(Aggregation(), shared_body, parent, chosen, values)
    torch.testing.assert_close(made.mean(shared_body), 1 / (1 + ramp))
    torch.testing.assert_close(made.precision(shared_body), 2 + ramp)


def test_running_statistics_are_pooled_over_all_members(batch_norm, newborn):
    one = newborn(batch_norm)
    parent = Hypothesis(clusters=(one,), association=Association.unseen(("a", "b"), 1))
    chosen = candidate(parent, {"a": 0, "b": 0}, OBJECTIVE)
    values = {
        "a": reply(0, 1, size=34, buffers=[0.0] * 4 + [1.0] * 4),
        "b": reply(0, 3, size=34, buffers=[4.0] * 4 + [1.0] * 4),
    }
    (made,), _ = combined(Aggregation(), batch_norm, parent, chosen, values)
    assert made.buffers(batch_norm).tolist() == [3.0] * 4 + [4.0] * 4


def test_inputs_are_left_as_they_were(linear, parent):
    chosen = candidate(parent, {"a": 0, "b": 1}, OBJECTIVE)
    values = {"a": reply(1, curvature=[2.0] * 8), "b": reply(2, curvature=[3.0] * 8)}
    tensors = [v for r in values.values() for v in (r.mean, r.curvature)]
    tensors += [p.blocks[0].gaussian.mean for p in parent.clusters]
    before = [t.clone() for t in tensors]
    for fusion in ("precision_weighted", "exact", "literal"):
        combined(Aggregation(fusion=fusion), linear, parent, chosen, values)
    assert all(torch.equal(t, b) for t, b in zip(tensors, before, strict=True))


@pytest.mark.parametrize(
    ("memory", "carried"), [("replace", 0.0), ("accumulate", -3.0), ("forget", -1.5)]
)
def test_log_weights_follow_the_memory(memory, carried):
    assert Aggregation(memory=memory, decay=0.5).carried_log_weight(-3.0) == carried


def test_histories_may_remember_more_than_models(linear, parent):
    forgetful = Aggregation(memory="replace", history_weights="accumulate", decay=0.5)
    assert forgetful.carried_log_weight(-3.0) == -3.0
    assert Aggregation(memory="accumulate", history_weights="forget").carried_log_weight(-1) == -0.9
    chosen, values = candidate(parent, {"a": 0}, OBJECTIVE), {"a": reply(1, 4, curvature=3.0)}
    one, other = (
        combined(rule, linear, parent, chosen, values)[0]
        for rule in (Aggregation(decay=0.5), forgetful)
    )
    assert [p.key for p in one] == [p.key for p in other]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"history_weights": "keep"}, "history_weights must be None or one of .*, got 'keep'"),
        ({"fusion": "mean"}, r"fusion must be one of precision_weighted, .*, got 'mean'"),
        ({"memory": "keep"}, "memory must be one of replace, forget, accumulate, got 'keep'"),
        ({"memory": "forget", "decay": 1.5}, r"decay must be between 0 and 1, got 1\.5"),
        ({"decay": float("nan")}, "decay must be between 0 and 1, got nan"),
    ],
)
def test_unknown_choices_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Aggregation(**arguments)


@pytest.mark.parametrize("part", [{"server": AdaptiveServer}, {"robust": Median}])
def test_classes_are_no_parts(part):
    with pytest.raises(TypeError, match=r"must have .*, got the class \w+; call it"):
        Aggregation(**part)


def test_a_block_says_what_it_is():
    flat = DiagonalGaussian(torch.zeros(5), torch.ones(()))
    block = Block(
        key="0123456789ab",
        name="head",
        gaussian=flat,
        base=flat,
        prior=flat,
        buffers=torch.empty(0),
    )
    assert repr(block) == "Block(head, 5 parameters, key 01234567)"
    assert repr(Posterior((block,))) == "Posterior(5 parameters, key 01234567)"
