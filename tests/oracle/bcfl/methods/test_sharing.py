"""CFL-CKS (Ma 2023, chapter 5) by hand: equations 5.5 and 5.6 pull alike."""

import numpy as np
import pytest
import torch

from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.regularizers import Sharing
from experiments.models import linear

CLUSTERS = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]])
SHARES = np.array([0.2, 0.3, 0.5])


def posteriors(model):
    return [
        from_initial(model, f"k{i}", torch.from_numpy(mean.copy()), torch.empty(0), 1.0)
        for i, mean in enumerate(CLUSTERS)
    ]


def test_the_mean_model_is_referenced():
    model = linear(2, 1, likelihood="gaussian", bias=False)
    clusters = posteriors(model)
    (mean,) = Sharing().references(clusters, list(SHARES), clusters[1].key)
    np.testing.assert_allclose(mean.mean(model), (-0.3, 0.1), atol=1e-12)


@pytest.mark.parametrize(
    ("index", "to_mean", "to_all", "gradient"),
    [(0, 1.7, 4.0, (2.6, -0.2)), (1, 3.7, 6.0, (0.6, 3.8)), (2, 1.7, 4.0, (-1.4, -2.2))],
)
def test_both_equations_have_one_gradient(index, to_mean, to_all, gradient):
    model = linear(2, 1, likelihood="gaussian", bias=False)
    clusters = posteriors(model)
    (reference,) = Sharing().references(clusters, list(SHARES), clusters[index].key)
    live = torch.from_numpy(CLUSTERS[index].copy()).requires_grad_()
    penalty = Sharing().penalty(live, live.detach(), [reference.mean(model)])
    penalty.backward()
    assert 2 * penalty.item() == pytest.approx(to_mean)
    np.testing.assert_allclose(2 * live.grad, gradient, atol=1e-12)
    differences = CLUSTERS[index] - CLUSTERS
    assert SHARES @ (differences**2).sum(axis=1) == pytest.approx(to_all)
    np.testing.assert_allclose(2 * SHARES @ differences, gradient, atol=1e-12)
    assert to_all - to_mean == pytest.approx(2.3)  # the scatter, which no client can change


def test_one_cluster_shares_nothing():
    term = Sharing()
    assert term.references(posteriors(linear(2, 1, bias=False))[:1], [1.0], "k0") == ()
    assert term.penalty(torch.ones(3), torch.zeros(3), ()).item() == 0
