"""Local Laplace posteriors, evidences and predictions against laplace-torch, in float64."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local import (
    DiagonalLaplace,
    FullLaplace,
    KroneckerLaplace,
    LastLayerLaplace,
    SubnetworkLaplace,
)
from posteriors.networks.functional import flat_parameters

pytestmark = pytest.mark.filterwarnings("ignore")


def mlp():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4)), (6,)


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)
    ), (1, 8, 8)


def cnn_with_group_norm():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(3), nn.Flatten(),
        nn.Linear(16, 4),
    ), (1, 8, 8)  # fmt: skip


def build(make, likelihood):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module, shape = make()
        module = module.double()
        inputs = torch.randn(20, *shape, dtype=torch.float64)
        classes = torch.randint(0, 4, (20,))
        values = torch.randn(20, 4, dtype=torch.float64)
        probes = torch.randn(7, *shape, dtype=torch.float64)
    return module, inputs, classes if likelihood == "categorical" else values, probes


def reference(module, inputs, targets, likelihood, options):
    import laplace
    import laplace.curvature

    options = dict(options)
    backend = getattr(laplace.curvature, options.pop("backend"))
    fitted = laplace.Laplace(
        copy.deepcopy(module),
        "classification" if likelihood == "categorical" else "regression",
        backend=backend,
        **options,
    )
    fitted.fit(DataLoader(TensorDataset(inputs, targets), batch_size=len(inputs)))
    return fitted


KRON = {"subset_of_weights": "all", "hessian_structure": "kron", "backend": "CurvlinopsGGN"}
CASES = [
    (mlp, DiagonalLaplace,
     {"subset_of_weights": "all", "hessian_structure": "diag", "backend": "BackPackGGN"}),
    (cnn_with_group_norm, DiagonalLaplace,
     {"subset_of_weights": "all", "hessian_structure": "diag", "backend": "CurvlinopsGGN"}),
    (mlp, FullLaplace,
     {"subset_of_weights": "all", "hessian_structure": "full", "backend": "BackPackGGN"}),
    (cnn, FullLaplace,
     {"subset_of_weights": "all", "hessian_structure": "full", "backend": "BackPackGGN"}),
    (mlp, LastLayerLaplace,
     {"subset_of_weights": "last_layer", "hessian_structure": "full", "backend": "BackPackGGN"}),
    (cnn_with_group_norm, LastLayerLaplace,
     {"subset_of_weights": "last_layer", "hessian_structure": "full", "backend": "BackPackGGN"}),
    (mlp, KroneckerLaplace, KRON),
    (cnn, KroneckerLaplace, KRON),
]  # fmt: skip


@pytest.mark.parametrize(("make", "method", "options"), CASES)
@pytest.mark.parametrize("likelihood", ["categorical", "gaussian"])
def test_evidence_and_outputs(make, method, options, likelihood):
    module, inputs, targets, probes = build(make, likelihood)
    theirs = reference(module, inputs, targets, likelihood, options)
    mean = flat_parameters(module)
    places = slice(len(mean) - theirs.n_params, None)
    prior_mean = torch.linspace(-0.5, 0.5, len(mean), dtype=torch.float64)
    if method is KroneckerLaplace:
        prior_precision = torch.tensor([2.5], dtype=torch.float64).expand(len(mean))
        theirs.prior_precision = 2.5
    else:
        prior_precision = torch.linspace(0.5, 4.0, len(mean), dtype=torch.float64)
        theirs.prior_precision = prior_precision[places]
    theirs.prior_mean = prior_mean[places]
    ours = method(likelihood).fit(
        module, inputs, targets, DiagonalGaussian(prior_mean, prior_precision)
    )
    expected = float(theirs.log_marginal_likelihood())
    assert ours.log_evidence == pytest.approx(expected, rel=1e-5)
    outputs = ours.predictive.outputs(probes)
    their_mean, their_covariance = theirs._glm_predictive_distribution(probes)
    torch.testing.assert_close(outputs.mean, their_mean.double(), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(outputs.covariance, their_covariance.double(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("make", "method", "options"), CASES)
@pytest.mark.parametrize("link", ["probit", "bridge"])
def test_class_probabilities(make, method, options, link):
    module, inputs, targets, probes = build(make, "categorical")
    theirs = reference(module, inputs, targets, "categorical", options)
    prior = DiagonalGaussian.isotropic(torch.zeros_like(flat_parameters(module)), 1.0)
    ours = method(link=link).fit(module, inputs, targets, prior)
    expected = theirs(probes, pred_type="glm", link_approx=link)
    torch.testing.assert_close(
        ours.predictive.probabilities(probes), expected.double(), rtol=1e-5, atol=1e-8
    )


def test_subnetwork_of_the_widest_parameters():
    from laplace.utils import LargestVarianceDiagLaplaceSubnetMask

    module, inputs, targets, _ = build(cnn, "categorical")
    diagonal = reference(module, inputs, targets, "categorical", CASES[0][2])
    mask = LargestVarianceDiagLaplaceSubnetMask(
        copy.deepcopy(module), n_params_subnet=12, diag_laplace_model=diagonal
    )
    indices = mask.select(DataLoader(TensorDataset(inputs, targets), batch_size=20))
    theirs = reference(
        module, inputs, targets, "categorical",
        {"subset_of_weights": "subnetwork", "hessian_structure": "full",
         "backend": "CurvlinopsGGN", "subnetwork_indices": indices},
    )  # fmt: skip
    prior = DiagonalGaussian.isotropic(torch.zeros_like(flat_parameters(module)), 1.0)
    ours = SubnetworkLaplace(12).fit(module, inputs, targets, prior)
    chosen = ours.predictive.posterior.covariance.indices
    curvature = DiagonalLaplace().fit(module, inputs, targets, prior).curvature
    torch.testing.assert_close(
        curvature[chosen].sort().values, curvature[indices].sort().values, rtol=1e-6, atol=1e-12
    )
    assert ours.log_evidence == pytest.approx(float(theirs.log_marginal_likelihood()), rel=1e-5)
    assert float(ours.curvature.count_nonzero()) <= 12
