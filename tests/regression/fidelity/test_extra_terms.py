"""Contrast and knowledge sharing: their values, and the parameters that they are about.

Ma (2023), equations 4.3 and 4.4 (contrast of parameters and of outputs), 5.5 and 5.6 (sharing),
all of them over whole models; 6.1 splits them between the classifier and the rest.
"""

import numpy as np
import pytest
import torch

from bcfl.protocol.regularizers import Contrast, Sharing


@pytest.fixture
def terms(divide, perceptron, build_method, watch):
    """(term, which parameters it sees) of the last round's trainings of a method."""

    def of(name):
        clients = divide("two-stage-dirichlet", groups=2, clients=6, samples_per_client=20)
        options = {"num_clusters": 2, "local_steps": 1, "contrast_warm_up": 1}
        _, _, trainings = watch(clients, perceptron, build_method(name, **options), 3)
        last = [request for round, request, _ in trainings if round == 2]
        assert len({request.objective for request in last}) == 1
        return [(term, perceptron.chosen(term.part)) for term in last[0].objective.regularizers]

    return of


def test_sharing_is_of_all_parameters(terms):
    ((term, seen),) = terms("wecfl-cks")
    assert isinstance(term, Sharing)
    assert seen.all()


def test_contrast_is_of_all_parameters(terms):
    ((term, seen),) = terms("wecfl-con-para")
    assert isinstance(term, Contrast)
    assert seen.all()


def test_both_together_divide_the_parameters(terms):
    found = {type(term): seen for term, seen in terms("wecfl-con-cks")}
    assert (found[Contrast] ^ found[Sharing]).all()


def vectors(*rows):
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


def contrast(x, models, temperature):
    """-log of the softmax of cosines divided by the temperature, at the first model."""
    cosines = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) / temperature for y in models]
    return np.log(np.exp(cosines).sum()) - cosines[0]


def test_contrast_of_parameters():
    own, *others = models = vectors((1, 2, 2), (-1, 0, 1), (3, 1, 0))
    live = torch.tensor((1, 2, 3), dtype=torch.float64, requires_grad=True)
    value = Contrast(0.5, 0.5).penalty(live, own, others)
    value.backward()
    rows = [model.numpy() for model in models]
    assert value.item() == pytest.approx(contrast(live.detach().numpy(), rows, 0.5), rel=1e-12)
    at, width = live.detach().numpy(), 1e-5
    slopes = [
        (contrast(at + step, rows, 0.5) - contrast(at - step, rows, 0.5)) / (2 * width)
        for step in width * np.eye(3)
    ]
    np.testing.assert_allclose(live.grad.numpy(), slopes, atol=1e-8)


def test_contrast_of_outputs():
    live, own, other = vectors(
        ((2, 0, -1), (0.5, 1, 0)), ((3, -1, 0), (1, 1, 1)), ((1, 1, 0), (0, 2, 0))
    )
    rows = zip(live.numpy(), own.numpy(), other.numpy(), strict=True)
    right = np.mean([contrast(x, (y, z), 1.0) for x, y, z in rows])
    value = Contrast(0.5, 1.0, "outputs").penalty(live, own, [other])
    assert value.item() == pytest.approx(right, rel=1e-12)


def test_pull_to_the_mean_is_the_pull_to_all_clusters():
    """Equations 5.5 and 5.6 have one gradient: 2 sum_k' w_k' (Theta_k - Theta_k')."""
    shares = np.array([0.2, 0.5, 0.3])
    clusters = np.random.default_rng(0).normal(size=(3, 4))
    live = torch.tensor(clusters[0], requires_grad=True)
    mean = torch.tensor(shares @ clusters)
    Sharing(1.0).penalty(live, live.detach(), [mean]).backward()
    every = sum(w * (clusters[0] - other) for w, other in zip(shares, clusters, strict=True))
    np.testing.assert_allclose(live.grad.numpy(), every, rtol=1e-12)
