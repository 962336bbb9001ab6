"""The page of scenario files has every key that the reader accepts."""

import importlib
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from bcfl import methods
from experiments.config.known import MODELS, PARTITIONS
from experiments.config.scenario import CHOICES, SECTIONS, Scenario, from_table
from experiments.config.tables import Rules
from experiments.datasets.built_in import BUILT_IN
from experiments.datasets.known import KNOWN
from experiments.models import MODELS as NETWORKS
from experiments.partitions import PARTITIONS as FUNCTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "scenario-files.md").read_text("utf-8")


@pytest.fixture(scope="module")
def made():
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("scenario_page").scenario_page()
    finally:
        sys.path.remove(str(DOCS))


def test_the_page_is_up_to_date(made):
    assert made == PAGE, "write it anew: python docs/scenario_page.py"


def keys_of(function):
    names = [*function.__wrapped__.__annotations__] if hasattr(function, "__wrapped__") else []
    names += [*function.__annotations__]
    return {*names} - {"dataset", "seed", "return", "options"}


def test_the_page_has_every_key_and_name():
    known = {entry.name for entry in fields(Scenario)} - {
        "federation",
        "method_options",
        "partition",
        "model",
        *SECTIONS,
    }
    known |= {entry.name for kind in SECTIONS.values() for entry in fields(kind)}
    known |= {entry.name for entry in fields(Rules)} - {"options"}
    known |= {*CHOICES.values(), *PARTITIONS, *MODELS, *BUILT_IN, *KNOWN}
    for function in (*FUNCTIONS.values(), *NETWORKS.values()):
        known |= keys_of(function)
    for entry in (*methods.RECIPES.values(), *methods.COMBINATORS.values()):
        known |= set(entry.options)
    assert {name for name in known if f"`{name}`" not in PAGE} == set()
    for section in (*SECTIONS, *CHOICES, "federation"):
        assert f"\n## `[{section}]`\n" in PAGE


def test_the_examples_of_the_page_are_read():
    text = PAGE.partition("```toml\n")[2].partition("```")[0]
    scenario = from_table({"name": "own", **tomllib.loads(text)})
    assert scenario.federation.options == {"num_clusters": 4}
    tables = tomllib.loads(PAGE.partition("```text\n")[2].partition("```")[0])
    scenario = from_table({"name": "own", **tomllib.loads(text), **tables})
    assert scenario.methods == ("ifca", "bcfl-mht-8")
    assert scenario.options("bcfl-mht-8")["objective"]["learning_rate"] == 0.05
