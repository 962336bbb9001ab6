"""The code blocks of the README run in order."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from experiments.config.scenario import from_table

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def names():
    """All names that the examples leave behind."""
    namespace = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README example {number}", "exec"), namespace)
        if number == 0:
            namespace["first"] = namespace["run"]
    return namespace


def test_there_are_four_examples():
    assert len(BLOCKS) == 4


def test_mirrored_images_are_out_of_distribution(names):
    mirrored, own = names["mirrored"].ood_score, names["prediction"].ood_score
    assert np.isfinite(own).all()
    assert mirrored.mean() > own.mean() + 1


def test_there_are_no_placeholders():
    assert "@@" not in README.read_text()


def test_every_command_is_named():
    text = README.read_text()
    for command in (
        "run",
        "resume",
        "compare",
        "report",
        "uncertainty",
        "explain",
        "graph",
        "list",
    ):
        assert f"\nbcfl {command} " in text


def test_results_agree_with_the_comments(names):
    run = names["first"]
    assert run.state.round == 25
    np.testing.assert_allclose(names["probabilities"].sum(axis=1), 1.0)
    assert set(names["graph"]) == set(run.clients)
    assert names["tree"].in_degree("r25h0") == 1
    groups = names["clients"].groups
    by_cluster = {}
    for client, row in zip(run.clients, names["probabilities"], strict=True):
        by_cluster.setdefault(int(row.argmax()), set()).add(groups[client])
    assert all(len(members) == 1 for members in by_cluster.values())


def test_a_custom_policy_associates_once(names):
    history = names["run"].state.history
    first = history[0].associations[0].labels
    assert (first >= 0).all()
    for snapshot in history:
        np.testing.assert_array_equal(snapshot.associations[0].labels, first)


def test_the_assignment_example_gives_what_its_comments_say(names):
    assert names["ranked"].labels.tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 1]]
    assert np.exp(names["ranked"].log_captured_mass) == pytest.approx(0.762, abs=5e-4)


def test_the_options_of_a_scenario_are_read_as_printed():
    (block,) = re.findall(r"```toml\n(.*?)```", README.read_text(), flags=re.DOTALL)
    rest = {
        "name": "own",
        "data": {"dataset": "optdigits"},
        "partition": {"kind": "iid"},
        "model": {"name": "mlp"},
    }
    found = from_table(tomllib.loads(block) | rest)
    assert found.methods == ("fedavg", "ifca-cam")
    policy = found.build("ifca-cam").policy
    assert (policy.num_clusters, policy.objective.learning_rate) == (5, 0.05)
    assert policy.objective.against == "start"
