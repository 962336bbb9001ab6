from dataclasses import dataclass

import pytest
import torch
from scipy.stats import entropy

from posteriors.predictive import predict_mixture


@dataclass
class Fixed:
    """Members that are given, whatever the inputs."""

    rows: torch.Tensor
    asked: int = 0

    def member_logits(self, inputs, count, generator):
        self.asked += 1
        return self.rows[:count].log()


def rows(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


INPUTS = torch.zeros(1, 2)


def test_parts_by_hand():
    """Two sure groups that disagree, one of them unsure inside."""
    sure, unsure = Fixed(rows([0.9, 0.1])), Fixed(rows([0.0, 1.0], [0.4, 0.6]))
    prediction = predict_mixture(
        [sure, unsure], torch.tensor([1.0, 3.0]), INPUTS, 2, torch.Generator()
    )
    mean = [0.25 * 0.9 + 0.75 * 0.2, 0.25 * 0.1 + 0.75 * 0.8]
    assert prediction.probabilities[0].tolist() == pytest.approx(mean)
    split = prediction.uncertainty
    assert float(split.total) == pytest.approx(entropy(mean))
    data = 0.25 * entropy([0.9, 0.1]) + 0.75 * 0.5 * entropy([0.4, 0.6])
    assert float(split.data) == pytest.approx(data)
    model = 0.75 * (entropy([0.2, 0.8]) - 0.5 * entropy([0.4, 0.6]))
    assert float(split.model) == pytest.approx(model)
    association = entropy(mean) - 0.25 * entropy([0.9, 0.1]) - 0.75 * entropy([0.2, 0.8])
    assert float(split.association) == pytest.approx(association)


def test_components_without_weight_are_not_evaluated():
    asked, ignored = Fixed(rows([0.5, 0.5])), Fixed(rows([1.0, 0.0]))
    prediction = predict_mixture(
        [ignored, asked], torch.tensor([0.0, 2.0]), INPUTS, 1, torch.Generator()
    )
    assert (asked.asked, ignored.asked) == (1, 0)
    assert prediction.probabilities.tolist() == [[0.5, 0.5]]
    assert float(prediction.uncertainty.association) == 0


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0]])
def test_bad_weights_are_named(weights):
    components = [Fixed(rows([0.5, 0.5]))] * 2
    with pytest.raises(ValueError, match="weights must be 2 numbers of at least 0, not all 0"):
        predict_mixture(components, torch.tensor(weights), INPUTS, 1, torch.Generator())
