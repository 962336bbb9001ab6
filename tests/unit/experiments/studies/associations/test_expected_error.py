"""The study of the calibration error of exact probabilities at a reduced size."""

import numpy as np
import pytest

from bcfl import Association, Hypothesis, HypothesisSet
from experiments.studies.associations import expected_error as study


def test_each_method_has_a_row(monkeypatch, capsys):
    monkeypatch.setattr(study, "ROUNDS", 2)
    study.main(["8", "rotated", "2", "0", "bcfl-race-2"])
    cells = capsys.readouterr().out.splitlines()[-1].split("|")[1:-1]
    assert [cell.strip() for cell in cells[:2]] == ["8", "`bcfl-race-2`"]
    assert all(0 <= float(cell.split("±")[0]) <= 1 for cell in cells[2:])


def test_the_error_of_one_half_for_one_pair_is_one_half():
    """One pair, together with probability .5: whichever is drawn, the error is .5."""
    hypotheses = HypothesisSet.weighted(
        [
            Hypothesis(
                clusters=(),
                association=Association(("a", "b"), np.array(labels), 2),
                log_weight=0.0,
            )
            for labels in ([0, 0], [0, 1])
        ],
        1,
        0.0,
    )
    errors = study.drawn_errors(hypotheses, np.random.default_rng(0), repeats=5)
    assert errors.tolist() == pytest.approx([0.5] * 5)
