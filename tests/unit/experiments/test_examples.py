"""The short scripts to start from, at quick sizes."""

import re

import numpy as np
import pytest
from PIL import Image

from bcfl import Run
from experiments.examples import association_graph, calibration, posterior_over_associations


def test_exact_and_kept_associations(capsys):
    found = posterior_over_associations.posteriors(0)
    exact = found["bcfl-exact"]
    assert len(exact.hypotheses) == 2**6
    weights = np.sort(exact.hypotheses.weights)[::-1]
    assert weights[0] < 0.9
    for kept in posterior_over_associations.KEPT:
        captured = np.exp(found[f"bcfl-mh-{kept}"].hypotheses.log_captured_mass)
        assert captured == pytest.approx(weights[:kept].sum(), rel=1e-6)
    posterior_over_associations.main()
    assert len(re.findall(r"client-\d", capsys.readouterr().out)) == 6


def test_calibration_of_plain_and_tuned_rules(capsys):
    calibration.main(rounds=4, clients=8)
    text = capsys.readouterr().out
    for kind in ("plug-in", "linearised", "monte-carlo"):
        assert text.count(kind) == 2


def test_communities_of_the_association_graph(tmp_path, capsys):
    path = tmp_path / "graph.png"
    association_graph.main(path, rounds=8)
    assert "4 communities, adjusted Rand index 1.00" in capsys.readouterr().out
    with Image.open(path) as picture:
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10


def test_communities_of_a_run_are_those_of_its_groups():
    run = association_graph.trained(rounds=8)
    assert isinstance(run, Run)
    found = association_graph.communities(run.association_graph(0.05))
    groups = [{client for client, one in run.groups.items() if one == g} for g in range(4)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, groups))
