"""Partitions and models as lists show them are those that are built."""

import inspect
from dataclasses import MISSING, fields

import pytest

from bcfl import methods
from experiments.config import components
from experiments.config.source import described, sentence
from experiments.models import MODELS
from experiments.partitions import PARTITIONS, SplitOptions
from experiments.partitions.partition import Split


@pytest.mark.parametrize("name", PARTITIONS)
def test_the_options_of_a_partition_are_its_arguments(name):
    parameters = inspect.signature(PARTITIONS[name]).parameters
    own = {n: p.default for n, p in parameters.items() if n not in ("dataset", "seed", "options")}
    shared = {entry.name: entry.default for entry in fields(Split)}
    if name in ("ocfl", "shared-ocfl"):
        shared["test_fraction"] = 0.3
    listed = components.partitions()[name]
    assert {option.name: option.default for option in listed.options.values()} == own | shared


@pytest.mark.parametrize("name", MODELS)
def test_the_options_of_a_model_are_its_arguments(name):
    parameters = inspect.signature(MODELS[name]).parameters
    for option in components.models()[name].options.values():
        if option.source != components.OF_THE_DATA:
            assert option.default == parameters[option.name].default
    assert set(components.models()[name].options) == set(parameters)


def test_every_component_and_option_is_described_and_typed():
    for one in (*components.partitions().values(), *components.models().values()):
        assert one.description, one.name
        for option in one.options.values():
            assert option.description, (one.name, option.name)
            assert "<" not in option.allowed, (one.name, option.name)
            assert "." not in option.allowed, (one.name, option.name)


def test_types_are_those_of_the_dataclass():
    assert components.split_options().keys() == SplitOptions.__annotations__.keys()
    assert components.split_options()["samples_per_client"].hint == (int | None)
    assert all(entry.default is not MISSING for entry in fields(Split))


def test_names_of_methods_partitions_and_models_differ():
    names = [*methods.RECIPES, *PARTITIONS, *MODELS]
    assert len(set(names)) == len(names)


def test_sections_and_first_sentences_of_docstrings():
    text = "Divide samples.\n\nArgs:\n    alpha: of\n        Dir.\n    **rest: no.\n"
    assert described(text) == {"alpha": "of Dir.", "rest": "no."}
    assert sentence("By domain: (K, C) of BCFL.\n\nMore.") == "By domain: (K, C) of BCFL"
