"""Scenarios with values and keys at random are refused by `ValueError`, or mean what they say."""

import copy
import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import partitions
from experiments.config import scenario
from experiments.datasets import Dataset
from experiments.partitions import PARTITIONS

TABLES = [one.table() for one in scenario.available()]
WORDS = st.sampled_from(
    [
        *("none", "all", "nan", "1e309", "ifca", "bcfl-mht-4", "ifca@num_clusters=3", "a@b", "@"),
        *("-w", "ifca-", "bcfl-mht-99999999999999999999", "num_clusters", "rounds", "seed"),
    ]
)
SCALARS = st.one_of(
    *(WORDS, st.booleans(), st.integers(-3, 12), st.integers(-(10**30), 10**30), st.floats()),
    *(st.text(max_size=6), st.dates()),
)
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=4), st.dictionaries(st.text(max_size=3), SCALARS)
)


def paths(table, before=()):
    for key, value in table.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from paths(value, (*before, key))


@st.composite
def altered(draw):
    """A scenario's table with up to three entries changed, removed or added."""
    table = copy.deepcopy(draw(st.sampled_from(TABLES)))
    for _ in range(draw(st.integers(1, 3))):
        *before, key = draw(st.sampled_from(list(paths(table))))
        inner = table
        for name in before:
            inner = inner[name]
        match draw(st.sampled_from(["change", "remove", "add"])):
            case "change":
                inner[key] = draw(VALUES)
            case "remove":
                del inner[key]
            case "add":
                inner[draw(st.one_of(WORDS, st.text(max_size=5)))] = draw(VALUES)
        if not table:
            break
    return table


def has_nan(value):
    if isinstance(value, dict | list | tuple):
        return any(map(has_nan, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and math.isnan(value)


def check_scenario(table):
    try:
        found = scenario.from_table(table)
        for label in found.methods:
            found.build(label)
    except ValueError:
        return
    assert has_nan(found.table()) or scenario.from_table(found.table()) == found


@settings(max_examples=120, deadline=None, database=None, derandomize=True)
@given(altered())
def test_altered_scenarios_are_refused_or_written_as_they_were_read(table):
    check_scenario(table)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, database=None)
@given(altered())
def test_more_altered_scenarios_are_refused_or_written_as_they_were_read(table):
    check_scenario(table)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(st.text(alphabet="[]{}=\"'.,#\n \\abc01_-\x00\ud800", max_size=40) | st.binary(max_size=40))
def test_files_that_are_no_scenarios_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "made-up.toml"
    given = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    path.write_bytes(given)
    with pytest.raises(ValueError, match=r"made-up\.toml"):
        scenario.load(path)


RANDOM = np.random.default_rng(0)
SMALL = Dataset(
    name="small",
    inputs=RANDOM.random((240, 1, 6, 6)).astype(np.float32),
    targets=np.arange(240) % 4,
    num_classes=4,
    num_native_test=40,
    writers=np.arange(240) // 10,
)


@st.composite
def partition_options(draw):
    name = draw(st.sampled_from(sorted(PARTITIONS)))
    known = [key for key in inspect.signature(PARTITIONS[name]).parameters if key != "dataset"]
    chosen = draw(st.lists(st.sampled_from(known), max_size=3, unique=True))
    return name, {"clients": draw(st.integers(1, 12))} | {key: draw(VALUES) for key in chosen}


def check_partition(name, options):
    try:
        found = partitions.build(name, SMALL, options)
    except ValueError:
        return
    assert all(len(data.views["train"]) for data in found)
    assert len(found) == options["clients"]


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(partition_options())
def test_options_of_partitions_are_refused_or_give_every_client_samples(drawn):
    check_partition(*drawn)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, database=None)
@given(partition_options())
def test_more_options_of_partitions_are_refused_or_give_every_client_samples(drawn):
    check_partition(*drawn)
