from collections import Counter

import numpy as np
import pytest

from bcfl.policies.faacl.faacl import LevelSchedule, num_levels, paired


def sizes(partitions):
    counts = Counter(partitions)
    return [counts[index] for index in range(len(counts))]


@pytest.mark.parametrize(
    ("devices", "wanted"),
    [
        (1, []),
        (2, [[2]]),
        (5, [[2, 2, 1], [3, 2], [5]]),
        (7, [[2, 2, 2, 1], [3, 4], [7]]),
        (20, [[2] * 10, [4] * 5, [8, 8, 4], [12, 8], [20]]),
    ],
)
def test_partitions_are_joined_until_one_is_left(devices, wanted):
    partitions, found = tuple(range(devices)), []
    for _ in range(num_levels(devices) - 1):
        partitions = paired(partitions)
        found.append(sizes(partitions))
    assert found == wanted
    assert set(partitions) == {0}


def test_the_first_meets_the_last_and_the_middle_one_stays_alone():
    assert paired(range(5)) == (0, 1, 2, 1, 0)
    assert paired((0, 1, 2, 1, 0)) == (0, 1, 0, 1, 0)


def test_each_level_is_repeated_as_in_the_program():
    """20 devices: 6 levels of 3 rounds are 18 rounds."""
    schedule = LevelSchedule(num_levels(20), 100)
    levels = [schedule.at(step) for step in range(20)]
    assert levels == [(level,) for level in range(6) for _ in range(3)] + [(), ()]


@pytest.mark.parametrize("rounds", range(1, 25))
@pytest.mark.parametrize("levels", [1, 2, 5, 6])
def test_all_levels_are_passed_in_order_in_any_number_of_rounds(levels, rounds):
    schedule = LevelSchedule(levels, rounds)
    passes = [level for step in range(rounds) for level in schedule.at(step)]
    assert passes == sorted(passes)
    assert set(Counter(passes).values()) == {max(1, min(3, rounds // levels))}
    assert set(passes) == set(range(levels))
    assert schedule.at(rounds) == schedule.at(-1) == ()


@pytest.mark.parametrize("name", ["levels", "rounds", "repeats"])
def test_numbers_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        LevelSchedule(**{"levels": 1, "rounds": 1, "repeats": 1, name: 0})


def test_random_pairs_join_two_partitions_each_and_leave_no_gap():
    seen = set()
    for seed in range(40):
        joined = paired(range(5), np.random.default_rng(seed))
        assert sorted(np.bincount(joined)) == [1, 2, 2]
        seen.add(joined)
    assert len(seen) > 5
    again = paired((0, 1, 1, 3, 2), np.random.default_rng(3))
    assert again[1] == again[2]
