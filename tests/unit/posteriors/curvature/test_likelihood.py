import math

import pytest
import torch
from scipy.stats import norm
from torch import nn

from posteriors.curvature.likelihood import (
    draw_noise,
    draw_targets,
    log_likelihood,
    loss_gradient,
    negative_log_likelihood,
    network_log_likelihood,
    output_factors,
)
from posteriors.networks.functional import flat_parameters

NO_TARGETS = torch.zeros(6, dtype=torch.int64)


def test_categorical_by_hand():
    outputs = torch.tensor([[0.0, 0.0], [0.0, 1000.0]])
    value = log_likelihood(outputs, torch.tensor([1, 1]), "categorical")
    assert value.dtype == torch.float64
    assert float(value) == pytest.approx(-0.69314718, abs=1e-8)


def test_gaussian_has_its_normaliser():
    outputs, targets = torch.tensor([[0.5, -1.0]]), torch.tensor([[2.0, 0.0]])
    expected = norm.logpdf([1.5, 1.0]).sum()
    assert float(log_likelihood(outputs, targets, "gaussian")) == pytest.approx(expected)


def test_small_differences_survive_long_sums():
    logits = torch.zeros(100_000, 2)
    logits[0, 0] = 0.001
    zeros = torch.zeros(100_000, dtype=torch.int64)
    base = log_likelihood(torch.zeros(100_000, 2), zeros, "categorical")
    assert float(log_likelihood(logits, zeros, "categorical") - base) == pytest.approx(
        0.0005, rel=1e-3
    )


def test_function_of_the_vector():
    layer = nn.Linear(2, 1, bias=False)
    inputs, targets = torch.tensor([[1.0, 2.0], [0.0, 1.0]]), torch.tensor([[1.0], [3.0]])
    function = network_log_likelihood(layer, inputs, targets, "gaussian")
    expected = norm.logpdf([1.0 - 5.0, 3.0 - 2.0]).sum()
    assert float(function(torch.tensor([1.0, 2.0]))) == pytest.approx(expected)
    own = float(function(flat_parameters(layer)))
    outputs = layer(inputs).detach()
    assert own == pytest.approx(float(log_likelihood(outputs, targets, "gaussian")))


@pytest.mark.parametrize(
    ("inputs", "targets", "likelihood", "message"),
    [
        (torch.zeros(0, 2), torch.zeros(0, 1), "gaussian", "at least one"),
        (torch.zeros(3, 2), torch.zeros(2, 1), "gaussian", "same number of samples"),
        (torch.zeros(3, 2), torch.zeros(3, 2), "gaussian", "targets must have the outputs' shape"),
        (torch.zeros(3, 2), torch.tensor([0, 1, 0]), "categorical", "targets must lie in 0 to 0"),
        (torch.zeros(3, 2), torch.zeros(3), "bernoulli", "targets must have the outputs' shape"),
        (torch.zeros(3, 2), torch.full((3, 1), 0.5), "bernoulli", "targets must be 0 or 1"),
    ],
)
def test_bad_data_are_named(inputs, targets, likelihood, message):
    with pytest.raises(ValueError, match=message):
        network_log_likelihood(nn.Linear(2, 1), inputs, targets, likelihood)


def product(columns):
    return torch.einsum("kni,knj->nij", columns.double(), columns.double())


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("scale", [0.0, 1.0, 40.0, 2000.0])
def test_softmax_columns_factor_the_covariance_of_a_one_hot_label(classes, scale):
    generator = torch.Generator().manual_seed(classes)
    logits = scale * torch.randn(6, classes, generator=generator, dtype=torch.float64)
    columns = output_factors(logits, NO_TARGETS, "ggn", "categorical")
    assert columns.shape == (classes - 1, 6, classes)
    p = logits.softmax(1)
    expected = torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1)
    torch.testing.assert_close(product(columns), expected, rtol=0, atol=1e-15)


def test_confident_float32_networks_keep_their_digits():
    """p (1 - p) with 1 - p = 1e-6 is resolved to one in 1e-6 of itself."""
    logits = torch.tensor([[14.0, 0.0, -1.0]])
    columns = output_factors(logits, NO_TARGETS[:1], "ggn", "categorical")
    p = logits.double().softmax(1)[0]
    rest = p.sum() - p
    rest[0] = p[1] + p[2]
    torch.testing.assert_close(product(columns)[0].diagonal(), p * rest, rtol=2e-6, atol=0)


def test_one_class_has_no_curvature():
    assert output_factors(torch.zeros(6, 1), NO_TARGETS, "ggn", "categorical").shape == (0, 6, 1)


def test_gaussian_columns_are_the_identity():
    columns = output_factors(torch.randn(4, 3), torch.zeros(4, 3), "ggn", "gaussian")
    torch.testing.assert_close(product(columns), torch.eye(3).double().expand(4, 3, 3))


@pytest.mark.parametrize("likelihood", ["categorical", "gaussian", "bernoulli"])
def test_empirical_fisher_column_is_the_loss_gradient(likelihood):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    if likelihood == "categorical":
        targets = torch.tensor([0, 2, 1, 1, 0])
        loss = torch.nn.functional.cross_entropy(outputs, targets, reduction="sum")
    elif likelihood == "bernoulli":
        targets = torch.randint(2, (5, 3), generator=generator).double()
        loss = -torch.distributions.Bernoulli(logits=outputs).log_prob(targets).sum()
    else:
        targets = torch.randn(5, 3, generator=generator, dtype=torch.float64)
        loss = 0.5 * (outputs - targets).square().sum()
    (expected,) = torch.autograd.grad(loss, outputs)
    columns = output_factors(outputs, targets, "empirical_fisher", likelihood)
    assert columns.shape == (1, 5, 3)
    torch.testing.assert_close(columns[0], expected)


def test_drawn_classes_follow_the_softmax_and_never_have_probability_zero():
    probabilities = torch.tensor([0.0, 0.2, 0.5, 0.0, 0.3, 0.0], dtype=torch.float64)
    outputs = probabilities.log().expand(40_000, 6)
    generator = torch.Generator().manual_seed(2)
    drawn = draw_targets(
        outputs, draw_noise("mc_ggn", outputs, "categorical", generator), "categorical"
    )
    shares = torch.bincount(drawn, minlength=6) / 40_000
    torch.testing.assert_close(shares.double(), probabilities, rtol=0, atol=0.01)
    assert shares[[0, 3, 5]].tolist() == [0.0] * 3


def test_drawn_labels_follow_their_probabilities():
    probabilities = torch.tensor([0.0, 0.2, 0.9, 1.0], dtype=torch.float64)
    outputs = torch.special.logit(probabilities).expand(40_000, 4)
    noise = draw_noise("mc_ggn", outputs, "bernoulli", torch.Generator().manual_seed(2))
    shares = draw_targets(outputs, noise, "bernoulli").mean(0)
    torch.testing.assert_close(shares, probabilities, rtol=0, atol=0.01)
    assert shares[[0, 3]].tolist() == [0.0, 1.0]


def test_confident_labels_keep_their_small_losses_and_curvature():
    outputs = torch.tensor([[60.0, -60.0]], dtype=torch.float64)
    loss = negative_log_likelihood(outputs, torch.tensor([[1.0, 0.0]]), "bernoulli")
    small = 2 * math.exp(-60)
    assert float(loss) == pytest.approx(small)
    columns = output_factors(outputs, torch.zeros(1, 2), "ggn", "bernoulli")
    assert float(columns.square().sum()) == pytest.approx(small)


@pytest.mark.parametrize("noise", [0.0, 1 - 2**-53])
def test_extreme_noise_still_names_a_class(noise):
    uniform = torch.tensor([noise], dtype=torch.float64)
    outputs = torch.tensor([[-800.0, 0.0, 0.5, -800.0]])
    assert int(draw_targets(outputs, uniform, "categorical")) == (1 if noise == 0 else 2)


def test_noise_is_only_drawn_where_it_is_used():
    assert draw_noise("ggn", torch.zeros(2, 3), "categorical", None) is None
    normal = draw_noise("mc_ggn", torch.zeros(2, 3), "gaussian", torch.Generator())
    assert normal.shape == (2, 3)
    assert torch.equal(draw_targets(torch.ones(2, 3), normal, "gaussian"), 1 + normal)


@pytest.mark.parametrize("likelihood", ["categorical", "gaussian", "bernoulli"])
def test_weighted_gradients_are_those_of_autograd_for_many_models(likelihood):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(2, 4, generator=generator, dtype=torch.float64)
    drawn = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    kinds = {"categorical": drawn.argmax(2), "gaussian": drawn, "bernoulli": (drawn > 0).double()}
    targets = kinds[likelihood]
    flat = negative_log_likelihood(outputs.flatten(0, 1), targets.flatten(0, 1), likelihood)
    (expected,) = torch.autograd.grad((flat * weights.flatten()).sum(), outputs)
    found = loss_gradient(outputs.detach(), targets, likelihood, weights)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("likelihood", ["categorical", "gaussian", "bernoulli"])
def test_reductions_are_those_of_the_values_of_single_samples(likelihood):
    outputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kinds = {
        "categorical": outputs.argmin(1),
        "gaussian": outputs.square(),
        "bernoulli": (outputs < 0).double(),
    }
    targets = kinds[likelihood]
    each = negative_log_likelihood(outputs, targets, likelihood)
    assert each.shape == (5,)
    for reduction in ("mean", "sum"):
        whole = negative_log_likelihood(outputs, targets, likelihood, reduction)
        torch.testing.assert_close(whole, getattr(each, reduction)())
