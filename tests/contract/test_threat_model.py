"""The table of docs/threat-model.md says what clients of each method send of training samples."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bcfl.methods import RECIPES
from bcfl.policies.wrappers.policy_wrapper import asked_by
from bcfl.protocol.requests import Score, Train

PAGE = Path(__file__).parents[2] / "docs" / "threat-model.md"


@dataclass
class Overheard:
    """Passes on all answers, and notes what kinds of answers about training samples there are."""

    executor: object
    kinds: set = field(default_factory=set)

    def answer(self, requests, models, round):
        outcomes = self.executor.answer(requests, models, round)
        for request in requests:
            if isinstance(request, Train):
                whole = outcomes[request].sent is None
                self.kinds.add("model" if whole else "chosen parameters")
                if outcomes[request].curvature.ndim:
                    self.kinds.add("precision")
            elif isinstance(request, Score) and request.view != "test":
                self.kinds.add(request.statistic.name)
        return outcomes


def documented():
    """Kinds of answers by method, from the page."""
    table = PAGE.read_text(encoding="utf-8").partition("## A curious server")[0]
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \|", table, re.MULTILINE)
    return {
        name: set(re.findall(r"`([^`]+)`", kinds))
        for names, kinds in rows
        for name in re.findall(r"`([^`]+)`", names)
    }


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_the_page_lists_what_clients_send(recipe, federation):
    name = recipe.title.replace("-M", "-3")
    sizes, rounds = ((6, 4), 3) if recipe.name == "bcfl-exact" else ((8, 3, 5, 9, 4), 4)
    setup = federation(name, sizes=sizes)
    overheard = Overheard(setup.engine)
    setup.run(rounds, executor=overheard)
    assert documented()[recipe.title] >= overheard.kinds
    beyond = overheard.kinds - {"model", "precision", "loss", "chosen parameters"}
    assert asked_by(setup.method.policy).keys() == beyond


ONLY_MODELS = re.search(r"\| (`[^|]*) \| `model`; `loss` for membership", PAGE.read_text("utf-8"))


@pytest.mark.parametrize("name", re.findall(r"`([^`]+)`", ONLY_MODELS[1]))
def test_clients_send_trained_models_only_where_no_beliefs_are_recorded(name, federation):
    setup = federation(name, sizes=(8, 3, 5, 9, 4))
    overheard = Overheard(setup.engine)
    setup.run(3, executor=overheard, belief_every=0)
    assert overheard.kinds == {"model"}


def test_the_page_lists_every_method_once():
    assert documented().keys() == {recipe.title for recipe in RECIPES.values()}
