"""Every method with every suffix that suits it runs and obeys the laws of associations."""

import itertools
import re

import numpy as np
import pytest

from bcfl import methods
from bcfl.hypotheses.association import UNSEEN
from bcfl.methods import COMBINATORS, RECIPES

CLUSTERED = ["fedavg-plus", "ifca", "fesem", "wecfl", "bcfl-g", "bcfl-c-2", "bcfl-mh-2"]
ROBUST = {"median", "trimmed-mean"}
FUSED = ("bcfl-", "fedweit")
"""Methods that fuse curvatures or send parts of models, which no robust mean can combine."""
BASES = [r.title.replace("-M", "-2") for r in RECIPES.values() if r.name != "bcfl-exact"]


def suits(base, suffixes, recipe):
    """Whether the method can be built: a base of one cluster has few suffixes."""
    return recipe(base).num_clusters > 1 or set(suffixes) <= {"finetune", "fedopt", *ROBUST}


def combined(base, suffixes):
    """Whether the base is averaged, where the suffixes have a robust mean."""
    return not (ROBUST.intersection(suffixes) and base.startswith(FUSED))


def assert_runs(name, federation):
    run = federation(name, sizes=(6, 5, 6, 5)).run(2)
    assert not any(record.ledger.failures for record in run.records)
    assert set(run.records[-1].evaluations) == set(run.clients)
    for snapshot in run.state.history:
        for association in snapshot.associations:
            seen = association.labels != UNSEEN
            np.testing.assert_allclose(association.serving[seen].sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("suffix", COMBINATORS)
@pytest.mark.parametrize("base", ["ifca", "wecfl", "bcfl-g"])
def test_a_suffix_changes_a_method_that_still_runs(base, suffix, federation, recipe):
    if not combined(base, [suffix]):
        with pytest.raises(ValueError, match=r"a robust mean, .* needs"):
            recipe(f"{base}-{suffix}")
        return
    assert_runs(f"{base}-{suffix}", federation)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMBINATORS)
@pytest.mark.parametrize("base", BASES)
def test_any_suffix_on_any_method(base, suffix, federation, recipe):
    if not combined(base, [suffix]):
        with pytest.raises(ValueError, match=r"a robust mean, .* needs"):
            recipe(f"{base}-{suffix}")
    elif suits(base, [suffix], recipe):
        assert_runs(f"{base}-{suffix}", federation)
    else:
        named = f"method '{base}' starts with one cluster: suffix -{suffix} needs"
        with pytest.raises(ValueError, match=re.escape(named)):
            recipe(f"{base}-{suffix}")


def together(*counts):
    """All sets of so many suffixes that bring different things."""
    for count in counts:
        for chosen in itertools.combinations(COMBINATORS, count):
            brought = [what for suffix in chosen for what in COMBINATORS[suffix].brings]
            if len(set(brought)) == len(brought):
                yield chosen


@pytest.mark.parametrize(
    ("base", "suffixes"),
    [
        (base if combined(base, suffixes) else "ifca", "-".join(suffixes))
        for base, suffixes in zip(itertools.cycle(CLUSTERED), together(2), strict=False)
    ],
)
def test_any_two_suffixes_combine(base, suffixes, federation):
    """Every pair once, on the methods in turn."""
    assert_runs(f"{base}-{suffixes}", federation)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "suffixes"),
    [
        (base, "-".join(suffixes))
        for base, suffixes in itertools.product(CLUSTERED, together(2, 3, 4))
        if combined(base, suffixes)
    ],
)
def test_suffixes_combine(base, suffixes, federation):
    assert_runs(f"{base}-{suffixes}", federation)


def test_all_that_a_robust_mean_needs_is_told_at_once():
    both = r"curvature must be 'samples' or 'uniform', .*; and fusion 'precision_weighted', got 'n"
    with pytest.raises(ValueError, match=both):
        methods.build("bcfl-race-median", num_clusters=2)
    options = {"curvature": "samples", "fusion": "precision_weighted"}
    assert methods.build("bcfl-race-median", num_clusters=2, **options).aggregation.robust
