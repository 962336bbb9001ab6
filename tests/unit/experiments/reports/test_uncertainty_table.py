import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from bcfl import PredictionRule
from bcfl.analysis import TUNING_GRID
from experiments.reports.uncertainty_page import edge_warnings, render
from experiments.reports.uncertainty_results import Result, as_json
from experiments.reports.uncertainty_table import (
    ASSOCIATION,
    CALIBRATION,
    DETECTION,
    aligned,
    association_table,
    chosen_values,
    header_groups,
    score_tables,
    table,
    tuned_table,
)
from experiments.runs.files import Pair
from experiments.scores.client_predictions import ClientPredictions, UncertaintyScores

NOTHING = UncertaintyScores(np.zeros(0), np.zeros(0), np.zeros(0))
NO_PREDICTIONS = ClientPredictions(
    probabilities=np.zeros((0, 2)),
    targets=np.zeros(0, dtype=np.int64),
    own=NOTHING,
    ood=NOTHING,
    noise=NOTHING,
)


def result(seed, value, part="all", rule=None):
    scores = {**dict.fromkeys(CALIBRATION, value), **dict.fromkeys(DETECTION, math.nan)}
    return Result(
        pair=Pair("ifca", seed),
        rule=rule or PredictionRule(),
        tuned=rule is not None,
        parts={part: scores},
        predictions=NO_PREDICTIONS,
    )


def test_cells_are_means_over_seeds():
    head, row = table([result(0, 0.25), result(1, 0.75)], CALIBRATION)
    assert head[:4] == ["method", "prediction", "accuracy", "NLL"]
    assert row[:4] == ["ifca", "plug-in", "50.0", "0.500"]
    assert table([result(0, 0.25)], DETECTION)[1] == ["ifca", "plug-in"], "nothing is known"


def test_associations_have_intervals_over_draws():
    """Two draws: half the distance times the 97.5 % quantile of Student's t, one degree."""

    def scored(seed, value, tuned=None):
        scores = dict.fromkeys(ASSOCIATION, value)
        return replace(result(seed, 0.5, rule=tuned), association=scores)

    (_, one) = association_table([scored(0, 0.2)])
    assert one == ["ifca", "1", *["0.200"] * 4]
    head, two = association_table(
        [scored(0, 0.2), scored(1, 0.4), scored(1, 0.4, PredictionRule())]
    )
    assert head == ["method", "draws", "NLL", "Brier", "ECE", "AUROC"]
    assert two == ["ifca", "2", *[f"0.300 ±{12.706 * 0.1:.3f}"] * 4]
    assert association_table([result(0, 0.5)]) == []
    unrated = replace(scored(0, 0.2), association={"association_nll": 0.2})
    assert association_table([unrated]) == [["method", "draws", "NLL"], ["ifca", "1", "0.200"]]


def detected(**changes):
    """A result with a score of all that is detected but samples of other groups."""
    scores = {name: math.nan if name.startswith("ood") else 0.5 for name in DETECTION}
    return replace(result(0, 0.5), parts={"all": scores | changes})


def test_where_all_clients_share_a_group_no_columns_are_of_samples_of_others():
    alone, both = detected(), detected(ood_auroc=0.75)
    *_, found = score_tables([alone])
    assert header_groups(found.cells[0])[1] == [("wrong predictions", 3), ("noise", 5)]
    assert "All clients share one group" in found.look
    *_, found = score_tables([alone, both])
    assert ("samples of other groups", 1) in header_groups(found.cells[0])[1]
    assert "and samples of other groups and noise by" in found.look


def test_what_changes_over_time_is_called_a_concept():
    scores = UncertaintyScores(np.full(2, 0.5), np.full(2, 0.1), np.full(2, 3.0))
    predicted = ClientPredictions(
        probabilities=np.eye(2), targets=np.arange(2), own=scores, ood=scores, noise=scores
    )
    one = replace(
        detected(ood_auroc=0.75),
        has_concepts=True,
        num_steps=4,
        predictions=predicted,
        association={"association_nll": 1.0},
    )
    *_, found = score_tables([one])
    assert ("samples of other concepts", 1) in header_groups(found.cells[0])[1]
    assert "group" not in found.look
    page = render("run", [one])
    assert "the concepts of time step 0" in page
    assert "Whether two clients are of one concept" in page
    assert re.search(
        r"All pairs are of one concept, or all of different ones, so that there is no AUROC", page
    )
    words = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert not re.search(r"\bgroups?\b", words)
    assert "the true groups of time step 0" in render("run", [replace(one, has_concepts=False)])


def test_clients_of_several_seeds_are_different_clients():
    cells = table([result(0, 0.25, "c1"), result(1, 0.75, "c1")], CALIBRATION)
    assert [row[2:4] for row in cells] == [
        ["of", "accuracy"],
        ["c1, seed 0", "25.0"],
        ["c1, seed 1", "75.0"],
    ]


def test_lines_have_text_to_the_left_and_numbers_to_the_right():
    lines = aligned([["method", "prediction", "NLL"], ["a", "plug-in", "0.1"], ["bc", "x", "12.5"]])
    assert lines == [
        "method  prediction   NLL",
        "a       plug-in      0.1",
        "bc      x           12.5",
    ]


def test_tuned_values_of_all_seeds_are_in_one_line():
    rules = [
        PredictionRule(predictive="linearised", prior_precision=100.0, temperature=1.25),
        PredictionRule(predictive="linearised", prior_precision=1e4, temperature=1.0),
    ]
    found = [result(seed, 0.5, rule=rule) for seed, rule in enumerate(rules)]
    assert chosen_values(found) == ["ifca linearised: prior 100 T 1.25 · prior 10,000 T 1"]
    assert chosen_values([result(0, 0.5)]) == []
    assert tuned_table(found) == [
        ["method", "prediction", "prior precision", "temperature"],
        ["ifca", "linearised", "100 · 10,000", "1.25 · 1"],
    ]
    assert tuned_table([result(0, 0.5)]) == []
    _, (*_, precision, temperature) = tuned_table([*found, result(2, 0.5, rule=rules[0])])
    assert (precision, temperature) == ("100 · 10,000 · 100", "1.25 · 1 · 1.25"), "seed by seed"
    _, (*_, common, _) = tuned_table([result(seed, 0.5, rule=rules[0]) for seed in range(3)])
    assert common == "100"


def test_columns_of_detection_are_below_what_is_detected():
    known = replace(result(0, 0.5), parts={"all": dict.fromkeys(DETECTION, 0.5)})
    head = table([known], DETECTION)[0]
    titles, groups = header_groups(head)
    assert titles[:6] == ["method", "prediction", "AUROC", "AUPR", "FPR95", "AUROC"]
    assert groups == [("wrong predictions", 3), ("samples of other groups", 5), ("noise", 5)]
    assert header_groups(["method", "NLL"]) == (["method", "NLL"], [])


def test_tuned_values_at_an_end_of_the_grid_are_told():
    lowest, highest = TUNING_GRID.prior_precisions[0], TUNING_GRID.prior_precisions[-1]

    def tuned(seed, precision, temperature=1.0):
        rule = PredictionRule(
            predictive="linearised", prior_precision=precision, temperature=temperature
        )
        return result(seed, 0.5, rule=rule)

    assert edge_warnings([tuned(0, 100.0), result(1, 0.5)]) == []
    (one,) = edge_warnings([tuned(0, highest), tuned(1, lowest), tuned(2, 100.0)])
    told = f"{highest:,.0f} (ifca linearised, seed 0); {lowest:g} (ifca linearised, seed 1)"
    assert f"0.1 to 1,000,000: {told}" in one
    assert "prior precision at an end of the values tried" in one
    (other,) = edge_warnings([tuned(0, 100.0, TUNING_GRID.temperatures[-1])])
    assert other.startswith("Tuned temperature at an end of the values tried, 0.25 to 4: 4 (ifca")
    (many,) = edge_warnings([tuned(seed, highest) for seed in range(6)])
    assert "and 2 more" in many


def test_undefined_scores_are_null_in_json():
    (row,) = json.loads(as_json([result(3, 0.5)]))
    assert (row["method"], row["seed"], row["part"], row["tuned"]) == ("ifca", 3, "all", False)
    assert row["scores"]["nll"] == pytest.approx(0.5)
    assert row["scores"]["wrong_auroc"] is None
