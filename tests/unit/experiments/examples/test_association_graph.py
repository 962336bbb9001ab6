import numpy as np
from PIL import Image

from bcfl import Run
from experiments.examples import association_graph


def test_communities_of_the_association_graph(tmp_path, capsys):
    path = tmp_path / "graph.png"
    association_graph.main(path, rounds=8)
    assert "4 communities, adjusted Rand index 1.00" in capsys.readouterr().out
    with Image.open(path) as picture:
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10


def test_communities_of_a_run_are_those_of_its_groups():
    run = association_graph.trained(rounds=8)
    assert isinstance(run, Run)
    communities = association_graph.communities(run.association_graph(0.05))
    groups = [{client for client, group in run.groups.items() if group == g} for g in range(4)]
    assert sorted(map(sorted, communities)) == sorted(map(sorted, groups))
