"""Paired tests over seeds: enumeration of all signs by hand, Holm, and how many seeds it takes."""

from itertools import product

import numpy as np
import pytest

from experiments.scores.significance import compare_best, holm, seeds_needed


def test_the_p_value_counts_sign_patterns():
    random = np.random.default_rng(3)
    first, second = random.normal(size=7) + 0.6, random.normal(size=7)
    gaps = first - second
    ranks = np.abs(gaps).argsort().argsort() + 1
    seen = ranks[gaps > 0].sum()
    sums = np.array([ranks[np.array(s) > 0].sum() for s in product((-1, 1), repeat=7)])
    tails = (sums >= seen).mean(), (sums <= seen).mean()
    found = compare_best({"a": first.tolist(), "b": second.tolist()}, better=1)
    assert found.best == "b"
    assert found.p_values["a"] == pytest.approx(min(1, 2 * min(tails)))


def test_few_seeds_never_suffice_and_enough_do():
    def always_better(seeds, methods):
        slopes = {i: 1 / 7 + i / 9 for i in range(methods)}
        return {f"m{i}": [10.0 * i + slopes[i] * s for s in range(seeds)] for i in range(methods)}

    for methods in (2, 3, 7):
        least = seeds_needed(methods)
        assert not compare_best(always_better(least - 1, methods), better=1).is_significant
        found = compare_best(always_better(least, methods), better=1)
        assert found.is_significant
        assert found.best == f"m{methods - 1}"
        assert compare_best(always_better(least, methods), better=-1).best == "m0"
    assert [seeds_needed(m) for m in (2, 3, 7)] == [6, 7, 8]


def test_equal_values_are_no_difference():
    found = compare_best({"a": [1.0] * 8, "b": [1.0] * 8}, better=1)
    assert found.p_values == {"b": 1.0}
    assert not found.is_significant


def test_unknown_values_and_single_methods_are_not_compared():
    assert compare_best({"a": [1.0, 2.0]}, better=1) is None
    assert compare_best({"a": [1.0, 2.0], "b": [1.0, float("nan")]}, better=1) is None
    assert compare_best({"a": [1.0, 2.0], "b": [1.0]}, better=1) is None
    assert compare_best({"a": [], "b": []}, better=1) is None


def test_holm_by_hand():
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03}) == pytest.approx(
        {"a": 0.06, "b": 0.03, "c": 0.06}
    )
