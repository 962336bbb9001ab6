"""Mutual information is finite, and the parts of an entropy sum to it, however rare a class is."""

import mpmath
import pytest
import torch

from posteriors import split_by_group, split_entropy


def members(*gaps):
    """One member for each gap between the logits of two classes."""
    rows = [[[0.0, -gap]] for gap in gaps]
    return torch.tensor(rows, dtype=torch.float64).softmax(-1)


def information(probabilities, shares):
    """Mutual information of two-class members, at 60 digits."""
    with mpmath.workdps(60):
        shares = [mpmath.mpf(share) / mpmath.fsum(map(mpmath.mpf, shares)) for share in shares]
        rows = [[mpmath.mpf(float(p)) for p in row] for row in probabilities[:, 0]]
        total = mpmath.mpf(0)
        for column in range(2):
            mixed = mpmath.fsum(s * row[column] for s, row in zip(shares, rows, strict=True))
            for share, row in zip(shares, rows, strict=True):
                if row[column]:
                    total += share * row[column] * mpmath.log(row[column] / mixed)
        return float(total)


@pytest.mark.parametrize(
    ("gaps", "shares"),
    [
        ((3.0, 1.0), (1.0, 1.0)),
        ((500.0, 600.0), (1.0, 1.0)),
        ((744.8, 800.0), (1.0, 1.0)),
        ((730.0, 800.0), (1e-8, 1.0)),
        ((740.0, 900.0), (1e-9, 1.0)),
    ],
)
def test_information_of_members(gaps, shares):
    probabilities = members(*gaps)
    weights = torch.tensor(shares, dtype=torch.float64)
    split = split_entropy(probabilities, weights)
    right = information(probabilities, shares)
    assert split.mutual_information.item() == pytest.approx(right, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("gap", [20.0, 730.0])
def test_parts_sum_to_the_entropy(gap):
    probabilities = members(gap, 800.0)
    weights = torch.tensor([1e-8, 1.0], dtype=torch.float64)
    split = split_by_group([probabilities[:1], probabilities[1:]], weights)
    parts = split.data + split.model + split.association
    assert parts.item() == pytest.approx(split.total.item(), abs=1e-12)
    assert split.association.item() >= 0.0
