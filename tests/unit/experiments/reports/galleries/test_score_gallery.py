"""Captions of curves speak of the panels that are drawn."""

import pytest

from experiments.reports.galleries.gallery import all_pictures
from experiments.reports.galleries.score_gallery import score_pictures
from experiments.runs.run_folder import RunFolder


@pytest.mark.parametrize(
    ("changes", "title", "told", "untold"),
    [
        ({"effective_hypotheses": 1.0}, "Log captured mass over rounds", "mass", "effective"),
        (
            {"log_captured_mass": 0.0},
            "Effective number of hypotheses over rounds",
            "Look for an effective number near 1",
            "mass stays",
        ),
        (
            {},
            "Log captured mass and effective number of hypotheses over rounds",
            "mass stays below 0",
            "true group",
        ),
    ],
)
def test_hypotheses(changes, title, told, untold, make_run, plain_figures):
    picture = all_pictures(RunFolder.read(make_run(**changes)), {})["hypotheses"]
    assert picture.title == title
    assert told in picture.caption
    assert untold not in picture.caption


def test_scores_that_are_not_known_are_not_spoken_of(make_run):
    run = RunFolder.read(make_run(accuracy=None, macro_f1=None))
    pictures = score_pictures(run)
    assert pictures["curves"].title == "Adjusted Rand index over rounds, one line per method"
    assert "accuracy" not in pictures["curves"].caption
    assert pictures["scores"].title.startswith("Negative log-likelihood over rounds")
    assert "F1" not in pictures["scores"].caption


def test_unknown_groups_of_a_stream_are_concepts(make_run):
    run = RunFolder.read(make_run(groups=0))
    assert "True groups are unknown" in score_pictures(run)["curves"].caption
    assert "Concepts are unknown" in score_pictures(run, "concept")["curves"].caption
