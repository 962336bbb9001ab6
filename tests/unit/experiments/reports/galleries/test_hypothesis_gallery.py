"""Captions of the figures of hypotheses fit the methods that are shown, and name the seed."""

from functools import partial
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from bcfl.drawing import HypothesisLineage
from experiments.reports.galleries.hypothesis_gallery import hypothesis_pictures, weights_texts
from experiments.reports.pictures.tree import Layout, tree_tips

SINGLE = {"r0h0": ("start", 1.0, ()), "r1h0": ("hypothesis", 1.0, ("r0h0",))}
RANKED = SINGLE | {
    "r1h0": ("hypothesis", 0.6, ("r0h0",)),
    "r1h1": ("hypothesis", 0.4, ("r0h0",)),
}
PROPOSED = SINGLE | {
    "r1p0": ("split", 0.0, ("r0h0",)),
    "r2h0": ("hypothesis", 0.7, ("r1p0",)),
    "r2h1": ("hypothesis", 0.3, ("r1h0",)),
}
RACE = {
    "r0h0": ("start", 1.0, ()),
    "r0h1": ("start", 1.0, ()),
    "r1h0": ("hypothesis", 0.9, ("r0h1",)),
    "r1h1": ("hypothesis", 0.1, ("r0h0",)),
}


def lineage(rounds):
    graph = nx.DiGraph()
    for name, (kind, weight, parents) in rounds.items():
        number, rank = name[1:].replace("p", "h").split("h")
        graph.add_node(name, round=int(number), rank=int(rank), weight=weight, kind=kind)
        graph.add_edges_from((parent, name) for parent in parents)
    return HypothesisLineage.of(graph)


def pictures(others=((1.0,),), **methods):
    """Figures of methods with seed 5, and weights of every method in the rounds of seed 2."""
    rows = [{"hypothesis_weights": list(weights)} for weights in others]
    run = SimpleNamespace(
        methods=tuple(methods),
        lineages=lambda: {method: lineage(rounds) for method, rounds in methods.items()},
        rounds={method: {5: [{}], 2: rows} for method in methods},
        seed_shown=lambda methods: "seed 5",
        first=lambda method: [],
        series=partial(nothing, len(rows)),
    )
    return hypothesis_pictures(run)


def nothing(rounds, method, field):
    return np.full((2, rounds), np.nan)


@pytest.mark.parametrize(
    ("rounds", "ribbons", "tree"),
    [
        (RANKED, "a band that takes over: one variant", "Look for the last common ancestor"),
        (PROPOSED, "colours that take over: a proposal", "Look for the last common ancestor"),
        (RACE, "colours that take over: one start outweighs", "Look for lines that end, and"),
    ],
)
def test_captions_fit_the_methods_that_are_drawn(rounds, ribbons, tree):
    found = pictures(mine=rounds)
    assert found["ribbons"].caption.startswith(f"Look for {ribbons}")
    assert ("proposal" in found["ribbons"].caption) == (rounds is PROPOSED)
    assert found["tree"].caption.startswith(tree)
    assert ("have no common ancestor" in found["tree"].caption) == (rounds is RACE)
    assert all("weight of a hypothesis (seed 5)" in found[name].caption for name in ["ribbons"])
    assert "Area of a circle: weight (seed 5)" in found["tree"].caption


def test_a_race_beside_another_method_is_told_apart():
    caption = pictures(mine=RANKED, race=RACE)["tree"].caption
    assert "reach the end. The starts of race have none: look for lines that end" in caption


def test_methods_with_alternatives_of_other_seeds_alone_are_told():
    found = pictures(others=[[1.0], [0.6, 0.4]], mine=RANKED, single=SINGLE)
    assert "Methods without alternatives are omitted; single had some with seed 2." in (
        found["ribbons"].caption
    )
    alone = pictures(others=[[0.6, 0.4]], single=SINGLE)
    assert (alone["ribbons"].svg, alone["tree"]) == ("", None)
    assert alone["ribbons"].caption == (
        "No method had alternative hypotheses (seed 5); single had some with seed 2."
    )
    assert pictures(single=SINGLE)["ribbons"] is None


def test_hypotheses_have_their_rank_and_where_they_come_from():
    race, ranked = lineage(RACE), lineage(RANKED)
    assert weights_texts("race", race) == [
        "race, round 1\nrank 1: 90.0%, from start 2\nrank 2: 10.0%, from start 1"
    ]
    assert weights_texts("mh", ranked) == ["mh, round 1\nrank 1: 60.0%\nrank 2: 40.0%"]
    tips = tree_tips({"race": Layout.of(race), "mh": Layout.of(ranked)})
    assert tips["node-race-r0h1"] == "race, at the start\nstart 2: weight 50.0%"
    assert tips["node-race-r1h0"] == "race, round 1\nrank 1: weight 90.0%\nfrom start 2"
    assert tips["node-mh-r0h0"] == "mh, at the start\nweight 100.0%"


def test_methods_without_a_captured_mass_are_told_from_those_that_hold_all_of_it():
    values = {
        ("ranked", "log_captured_mass"): -0.5,
        ("single", "log_captured_mass"): 0.0,
        ("ranked", "effective_hypotheses"): 1.8,
    }
    run = SimpleNamespace(
        methods=("single", "ranked", "race"),
        lineages=dict,
        rounds={method: {5: [{}, {}]} for method in ("single", "ranked", "race")},
        first=lambda method: [{}, {}],
        seed_shown=lambda methods: "seed 5",
        series=lambda method, field: np.full((1, 2), values.get((method, field), np.nan)),
    )
    caption = hypothesis_pictures(run)["hypotheses"].caption
    assert "Omitted since they hold all of it: single." in caption
    assert "Omitted since it is not known of them: race." in caption
    assert "effective number near 1" in caption
