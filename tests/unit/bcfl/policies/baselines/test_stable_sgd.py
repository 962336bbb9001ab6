from dataclasses import replace

import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies.baselines.stable_sgd import StableSGD


@pytest.mark.parametrize(
    ("decay", "rates"),
    [
        (
            0.4,
            [
                0.04,
                0.016,
                0.0064,
                0.00256,
                0.001024,
                0.0004096,
                0.00016384,
                0.000065536,
                5e-5,
                5e-5,
            ],
        ),
        (0.8, [0.08, 0.064, 0.0512, 0.04096, 0.032768, 0.0262144, 0.02097152]),
    ],
)
def test_rates_fall_from_step_to_step(decay, rates):
    policy = StableSGD(Objective(learning_rate=0.1), decay)
    assert [policy.rate(step) for step in range(len(rates))] == pytest.approx(rates, rel=1e-12)


def test_clients_train_at_the_rate_of_the_time_step(linear, newborn, context):
    policy = StableSGD(Objective(learning_rate=0.1))
    parent = Hypothesis(clusters=(newborn(linear),), association=Association.unseen(("a", "b"), 1))
    for step, rate in ((0, 0.08), (1, 0.064)):
        here = replace(context(("a", "b"), 3), step=step)
        (chosen,) = drive(policy.associate(parent, here))
        assert [t.objective.learning_rate for t in chosen.trainings] == pytest.approx([rate] * 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"decay": 0.0}, r"decay must lie in \(0, 1\], got 0.0"),
        ({"least": -1.0}, "least must be finite and at least 0, got -1.0"),
    ],
)
def test_bad_numbers(wrong, message):
    with pytest.raises(ValueError, match=message):
        StableSGD(Objective(), **wrong)
