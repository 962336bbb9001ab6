"""The study of association posteriors at a reduced size."""

import numpy as np
import pytest

from bcfl import methods
from experiments.studies import association_posterior as study


def test_a_run_is_scored():
    method = methods.build("bcfl-race-2", num_clusters=4)
    draw = study.believed(method, study.clients_of("label-skew", 8, 0), seed=0, rounds=3)
    assert len(draw.scores) == len(study.COLUMNS)
    assert np.isfinite(draw.scores).all()
    text = study.row("bcfl-race-2", [draw, draw])
    assert text.count("|") == len(study.COLUMNS) + 3
    assert text.count("± 0.000") == len(study.COLUMNS)  # all but the trainings, and the pooled one
    error = draw.scores[study.COLUMNS.index("ECE")]
    assert study.pooled_cell([draw]) == f"{error:.3f}"


def test_errors_of_opposite_draws_cancel_in_the_pooled_calibration_error():
    together = np.full((2, 2), 0.5)
    draws = [study.Draw(together, groups, 0.0, 0.0) for groups in ([0, 0], [0, 1])]
    assert [draw.scores[study.COLUMNS.index("ECE")] for draw in draws] == [0.5, 0.5]
    assert study.pooled_cell(draws) == "0.000 ± 0.000"


def test_every_named_method_can_be_built():
    for recipe, options in study.METHODS.values():
        given = methods.applicable(recipe, {"num_clusters": 4}) | dict(options)
        assert methods.build(recipe, **given).num_clusters == 4


def test_other_kinds_are_refused():
    with pytest.raises(ValueError, match=r"kind must be one of rotated, .* got 'mirrored'"):
        study.clients_of("mirrored", 8, 0)


def test_sizes_may_be_unequal():
    sizes = [len(client.views["train"]) for client in study.clients_of("unequal", 8, 0)]
    assert sorted(sizes) == [4] * 10 + [8] * 20 + [16] * 10
    again = [len(client.views["train"]) for client in study.clients_of("unequal", 8, 1)]
    assert again != sizes
