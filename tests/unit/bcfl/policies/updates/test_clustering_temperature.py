from dataclasses import replace

import numpy as np
import pytest

from bcfl.policies.context import round_number
from bcfl.policies.updates.clustering_temperature import (
    AtRound,
    TemperatureRise,
    clustering_temperature,
)

COURSE = (0.42, 0.38, 0.38, 0.437)


def first_shot(trigger, context):
    before = None
    for round, temperature in enumerate(COURSE):
        if trigger.fires(temperature, before, context(("a",), round)):
            return round
        before = temperature
    return None


def test_the_shot_is_at_the_first_strict_rise(context):
    assert first_shot(TemperatureRise(), context) == 3


def test_the_printed_rule_fires_at_once_and_on_a_plateau(context):
    printed = TemperatureRise(rule="printed")
    assert first_shot(printed, context) == 0
    now = context(("a",), 2)
    assert printed.fires(0.38, 0.38, now)
    assert not TemperatureRise().fires(0.38, 0.38, now)
    assert not printed.fires(0.38, 0.42, now)


def test_a_fixed_round_does_not_care_for_the_temperature(context):
    trigger = AtRound(2)
    assert [trigger.fires(0.0, 1.0, context(("a",), r)) for r in range(4)] == [0, 0, 1, 1]
    share = AtRound(0.4)
    of_ten = [share.fires(0.0, 1.0, replace(context(("a",), r), num_rounds=10)) for r in range(6)]
    assert of_ten == [0, 0, 0, 0, 1, 1]


def test_rounds_by_number_and_by_share(context):
    of_fifty = replace(context(("a",)), num_rounds=50)
    assert [round_number(when, of_fifty) for when in (0, 1, 20, 0.4, 0.001)] == [0, 1, 20, 20, 1]


def test_temperature_lies_between_zero_and_one():
    assert clustering_temperature(np.zeros((4, 4))) == 0.0
    assert clustering_temperature(2 - 2 * np.eye(2)) == 1.0
    apart = 2 * (1 - np.eye(5))
    assert clustering_temperature(apart, 3.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TemperatureRise(0.5), "norm must be at least 1, got 0.5"),
        (lambda: TemperatureRise(rule="fall"), "rule must be 'rise' or 'printed', got 'fall'"),
        (lambda: AtRound(-1), "round must be a whole number from 0 or a share below 1, got -1"),
        (lambda: AtRound(2.5), "round must be a whole number from 0 or a share below 1, got 2.5"),
        (lambda: AtRound(1, 0), "norm must be at least 1, got 0"),
        (lambda: clustering_temperature(np.zeros((1, 1))), "at least 2 updates, got 1"),
    ],
)
def test_what_is_wrong_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
