import pytest
import torch
from scipy.stats import entropy

from posteriors.predictive.entropy import split_by_group, split_entropy


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_two_confident_members_that_disagree():
    split = split_entropy(rows([0.9, 0.1], [0.1, 0.9]))
    assert float(split.total) == pytest.approx(0.6931472, abs=1e-7)
    assert float(split.data) == pytest.approx(0.3250830, abs=1e-7)
    assert float(split.mutual_information) == pytest.approx(0.3680642, abs=1e-7)


def test_parts_agree_with_scipy_under_weights_and_batch_axes():
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.randn(3, 4, 5, generator=generator).double().softmax(-1)
    weights = torch.tensor([1.0, 2.0, 5.0])
    split = split_entropy(probabilities, weights)
    shares = (weights / 8).double()
    total = entropy(torch.einsum("m,mbc->bc", shares, probabilities).numpy(), axis=-1)
    data = shares.numpy() @ entropy(probabilities.numpy(), axis=-1)
    torch.testing.assert_close(split.total, torch.from_numpy(total))
    torch.testing.assert_close(split.data, torch.from_numpy(data))
    torch.testing.assert_close(split.mutual_information, torch.from_numpy(total - data))


def test_near_agreement_is_accurate():
    """The mutual information of p +- e is e² / (2 p (1 - p)) to first order."""
    step = 1e-9
    split = split_entropy(rows([0.3 + step, 0.7 - step], [0.3 - step, 0.7 + step]))
    assert float(split.mutual_information) == pytest.approx(step**2 / (2 * 0.21), rel=1e-5)


def test_one_hot_members_and_members_of_weight_zero():
    split = split_entropy(rows([1.0, 0.0], [0.0, 1.0]), rows(1.0, 0.0))
    assert [float(part) for part in (split.total, split.data, split.mutual_information)] == [0] * 3


@pytest.mark.parametrize(
    ("probabilities", "weights", "message"),
    [
        (rows([0.5, 0.6]), None, "sum to 1"),
        (rows([1.5, -0.5]), None, "at least 0"),
        (rows(1.0), None, r"shape \(members, \.\.\., classes\)"),
        (rows([0.5, 0.5]), rows(1.0, 1.0), "weights must be 1 finite numbers"),
        (rows([0.5, 0.5]), rows(0.0), "not all 0"),
        (rows([0.5, 0.5]), rows(-1.0), "at least 0"),
    ],
)
def test_bad_predictions_are_named(probabilities, weights, message):
    with pytest.raises(ValueError, match=message):
        split_entropy(probabilities, weights)


def test_groups_of_one_have_no_uncertainty_of_the_model():
    split = split_by_group([rows([0.9, 0.1]), rows([0.1, 0.9])])
    assert float(split.model) == 0
    assert float(split.data) == pytest.approx(0.3250830, abs=1e-7)
    assert float(split.association) == pytest.approx(0.3680642, abs=1e-7)


def test_one_group_has_no_uncertainty_of_the_association():
    split = split_by_group([rows([0.9, 0.1], [0.1, 0.9])], rows(3.0))
    assert float(split.association) == 0
    assert float(split.model) == pytest.approx(0.3680642, abs=1e-7)


def test_groups_of_different_sizes_equal_one_weighted_mixture():
    """Total and data part don't depend on the grouping, and the rest is shared out."""
    generator = torch.Generator().manual_seed(0)
    groups = [torch.randn(n, 4, 5, generator=generator).double().softmax(-1) for n in (3, 1, 2)]
    weights = rows(1.0, 2.0, 5.0)
    split = split_by_group(groups, weights)
    single = torch.cat(
        [w / 8 / len(g) * torch.ones(len(g)) for w, g in zip(weights, groups, strict=True)]
    )
    whole = split_entropy(torch.cat(groups), single)
    torch.testing.assert_close(split.total, whole.total)
    torch.testing.assert_close(split.data, whole.data)
    torch.testing.assert_close(split.model + split.association, whole.mutual_information)
    assert bool((split.model > 0).all())


def test_bad_groups_are_named():
    with pytest.raises(ValueError, match="at least one tensor"):
        split_by_group([])
    with pytest.raises(ValueError, match=r"agree in all axes but the first"):
        split_by_group([rows([0.5, 0.5]), rows([0.2, 0.3, 0.5])])
