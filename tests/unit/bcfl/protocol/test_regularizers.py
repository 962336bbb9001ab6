"""Terms of the training loss: their numbers, the models they name, where gradients go."""

import pytest
import torch

from bcfl import Association, Hypothesis, Objective
from bcfl.architecture.layout import BODY, CLASSIFIER, Part
from bcfl.policies.trainings import trainings
from bcfl.protocol.adaptive_terms import Retention
from bcfl.protocol.loss_terms import ClosedForm
from bcfl.protocol.regularizers import (
    Attraction,
    Consolidation,
    Contrast,
    Proximal,
    Sharing,
)

TERMS = [Proximal(), Contrast(), Contrast(sees="outputs"), Sharing()]


@pytest.fixture
def clusters(linear, newborn):
    return tuple(newborn(linear, seed) for seed in range(3))


@pytest.mark.parametrize("kind", [Proximal, Contrast, Sharing])
@pytest.mark.parametrize("weight", [0, -1.0, float("inf"), float("nan")])
def test_a_weight_is_positive_and_finite(kind, weight):
    with pytest.raises(ValueError, match=f"weight must be positive and finite, got {weight}"):
        kind(weight)


def test_contrast_names_what_is_wrong():
    with pytest.raises(ValueError, match="temperature must be positive and finite, got 0"):
        Contrast(temperature=0)
    with pytest.raises(ValueError, match="sees must be 'parameters' or 'outputs', got 'logits'"):
        Contrast(sees="logits")


def test_each_names_the_models_that_it_needs(clusters):
    shares, start = [0.2, 0.3, 0.5], clusters[1].key
    assert Proximal().references(clusters, shares, start) == ()
    assert Contrast().references(clusters, shares, start) == (clusters[0], clusters[2])
    (mean,) = Sharing().references(clusters, shares, start)
    parts = [p.blocks[0].gaussian.mean for p in clusters]
    expected = sum(s * p for s, p in zip(shares, parts, strict=True))
    torch.testing.assert_close(mean.blocks[0].gaussian.mean, expected)


def test_clusters_of_one_model_are_one_other(clusters):
    """At a common start there is nothing to be told apart from."""
    one = clusters[0]
    assert Contrast().references((one, one, one), [1.0, 0.0, 0.0], one.key) == ()
    twice = (one, clusters[1], clusters[1])
    assert Contrast().references(twice, [1.0, 0.0, 0.0], one.key) == (clusters[1],)


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_gradients_flow_into_the_client_alone(term):
    live, start, other = (torch.randn(4, 3).requires_grad_() for _ in range(3))
    value = term.penalty(live, start.detach(), [other.detach()])
    value.backward()
    assert value.ndim == 0
    assert live.grad.abs().sum() > 0
    assert start.grad is None
    assert other.grad is None


def test_nothing_pulls_a_client_at_its_start():
    start = torch.randn(5)
    live = start.clone().requires_grad_()
    Proximal().penalty(live, start, ()).backward()
    assert not live.grad.any()


def test_what_each_is_about(shared_body):
    """Chapters 4 and 5 of the thesis: all parameters; chapter 6: classifier, and all but it."""
    assert Contrast().part == Sharing().part == Part()
    chosen = [shared_body.chosen(part) for part in (CLASSIFIER, BODY)]
    assert not (chosen[0] & chosen[1]).any()
    assert (chosen[0] | chosen[1]).all()


def test_a_training_names_the_models_of_its_terms(clusters):
    parent = Hypothesis(clusters=clusters, association=Association.unseen(("a", "b"), 3))
    objective = Objective(regularizers=(Proximal(), Contrast(), Sharing(part=Part())))
    work = trainings(parent, {"a": clusters[0].key, "b": clusters[2].key}, objective)
    keys = [posterior.key for posterior in clusters]
    first, second = (request.references for request in work.requests)
    assert first[:2] == ((), (keys[1], keys[2]))
    assert second[:2] == ((), (keys[0], keys[1]))
    (mean,) = work.models  # one mean model, that both name
    assert first[2] == second[2] == (mean.key,)
    assert mean.key not in keys


@pytest.mark.parametrize(
    ("term", "num_references"),
    [
        (Proximal(), 0),
        (Contrast(temperature=0.4), 3),
        (Contrast(), 0),
        (Sharing(), 1),
        (Sharing(), 0),
        (Attraction(1.0, (0.2, 0.0, 0.8)), 3),
        (Consolidation(), 2),
        (Retention(weight=1.0, sparsity=0.5), 2),
    ],
)
@pytest.mark.parametrize("leading", [(), (4,)])
def test_gradients_in_closed_form_are_those_of_the_penalty(term, num_references, leading):
    """Of one model and of many."""
    random = torch.Generator().manual_seed(1)

    def drawn(*shape):
        return torch.randn(*leading, *shape, 6, generator=random, dtype=torch.float64)

    live, start, references = drawn(), drawn(), drawn(num_references)
    assert isinstance(term, ClosedForm)
    rows = [tensor.reshape(-1, *tensor.shape[len(leading) :]) for tensor in (live, start)]
    others = references.reshape(len(rows[0]), num_references, 6)
    expected = []
    for one, own, models in zip(*rows, others, strict=True):
        leaf = one.clone().requires_grad_()
        term.penalty(leaf, own, models.unbind()).backward()
        expected.append(leaf.grad)
    found = term.gradient(live, start, references)
    torch.testing.assert_close(found, torch.stack(expected).reshape(live.shape))
