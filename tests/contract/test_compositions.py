"""Every method with every suffix that suits it runs and obeys the laws of associations."""

import itertools
import re

import numpy as np
import pytest

from bcfl.hypotheses.association import UNSEEN
from bcfl.methods import COMBINATORS, RECIPES

CLUSTERED = ["fedavg-plus", "ifca", "fesem", "wecfl", "bcfl-g", "bcfl-c-2", "bcfl-mh-2"]
BASES = [r.title.replace("-M", "-2") for r in RECIPES.values() if r.name != "bcfl-exact"]


def suits(base, suffixes, recipe):
    """Whether the method can be built: a base of one cluster has few suffixes."""
    return recipe(base).num_clusters > 1 or set(suffixes) <= {"finetune", "fedopt"}


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
def test_a_suffix_changes_a_method_that_still_runs(base, suffix, federation):
    assert_runs(f"{base}-{suffix}", federation)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", COMBINATORS)
@pytest.mark.parametrize("base", BASES)
def test_any_suffix_on_any_method(base, suffix, federation, recipe):
    if suits(base, [suffix], recipe):
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
                yield "-".join(chosen)


@pytest.mark.parametrize(
    ("base", "suffixes"), list(zip(itertools.cycle(CLUSTERED), together(2), strict=False))
)
def test_any_two_suffixes_combine(base, suffixes, federation):
    """Every pair once, on the methods in turn."""
    assert_runs(f"{base}-{suffixes}", federation)


@pytest.mark.slow
@pytest.mark.parametrize("suffixes", list(together(2, 3, 4)))
@pytest.mark.parametrize("base", CLUSTERED)
def test_suffixes_combine(base, suffixes, federation):
    assert_runs(f"{base}-{suffixes}", federation)
