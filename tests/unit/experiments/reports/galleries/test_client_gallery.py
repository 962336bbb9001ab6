"""A real run's report: its clients' data, moves and models are in it."""

import re
import shutil

import numpy as np
import pytest

from bcfl.analysis.rows import DamagedRunWarning
from experiments.commands.run import run
from experiments.config.scenario import from_table
from experiments.reports import compare_page, local_models
from experiments.reports.galleries import client_gallery
from experiments.reports.galleries.client_gallery import client_pictures
from experiments.reports.local_models import LocalModels
from experiments.reports.pictures.time_steps import Stream
from experiments.reports.report import render, write_report
from experiments.reports.round_history import FirstStates
from experiments.runs.files import Pair
from experiments.runs.restore import newest_state
from experiments.runs.run_folder import RunFolder
from experiments.runs.runner import Experiment

pytestmark = pytest.mark.usefixtures("plain_figures")

TABLE = {
    "name": "small",
    "methods": ["fedavg", "wecfl", "bcfl-mht-4"],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "rotated", "groups": 2, "clients": 8, "samples_per_client": 40},
    "model": {"name": "linear"},
    "training": {"local_steps": 5},
    "federation": {"rounds": 3, "num_clusters": 2},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import tomli_w

    place = tmp_path_factory.mktemp("clients")
    path = place / "small.toml"
    path.write_text(tomli_w.dumps(TABLE))
    run(str(path), out=place / "run")
    return place / "run"


def pictures_of(folder):
    run = RunFolder.read(folder)
    return client_pictures(run, FirstStates.of(run).states)


@pytest.mark.figures
def test_the_report_shows_the_partition_and_the_moves(folder):
    pictures = pictures_of(folder)
    assert [name for name, picture in pictures.items() if picture] == [
        "partition",
        "moves",
        "clusters",
    ]
    assert "move-wecfl-7" in pictures["moves"].svg
    assert "fedavg" not in pictures["moves"].svg
    assert pictures["partition"].svg.count("bubbles-group-") >= 2
    page = render(RunFolder.read(folder))
    for title in ("Partition of the data", "Similarity of models"):
        assert title in page
    assert all(page.count(picture.svg) == 1 for picture in pictures.values() if picture)


def test_a_checkpoint_that_cannot_be_read_is_told(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "run")
    newest = max(copy.glob("wecfl/seed-0/checkpoints/round-*"))
    with (newest / "tensors.safetensors").open("r+b") as file:
        file.truncate(500)
    told = "figures from checkpoints lack wecfl, seed 0: .*is damaged"
    with pytest.warns(DamagedRunWarning, match=told):
        page = write_report(copy).read_text()
    with pytest.warns(DamagedRunWarning, match=told):
        compared = compare_page.render([copy])
    for text in (page, compared):
        assert re.search("<li>Figures from checkpoints lack wecfl, seed 0: .*is damaged", text)
    assert "Figures from checkpoints" not in write_report(folder).read_text()


def test_clients_without_true_groups_have_captions_of_their_own(folder):
    run = RunFolder.read(folder)
    states = FirstStates.of(run).states
    groups, known = client_gallery._groups(run), client_gallery.leading_clusters(states)
    assert (
        "absorbs all colours" in client_gallery._moves(run, states, known, groups, Stream()).caption
    )
    caption = client_gallery._moves(run, states, known, dict.fromkeys(groups), Stream()).caption
    assert "absorbs the others" in caption
    assert "group" not in caption


def test_local_models_are_those_of_the_run(folder):
    setup = Experiment(scenario=from_table(TABLE), device="cpu")
    found = local_models.record(setup, Pair("wecfl", 0), rounds=2)
    assert found.rounds.tolist() == [1, 2]
    history = newest_state(folder, Pair("wecfl", 0)).history
    for labels, snapshot in zip(found.clusters, history, strict=False):
        assert labels.tolist() == snapshot.associations[0].labels.tolist()
    assert found.distances.shape == found.models.shape == found.updates.shape == (2, 8, 8)
    np.testing.assert_allclose(np.diagonal(found.models, axis1=1, axis2=2), 1, atol=1e-5)
    np.testing.assert_allclose(np.diagonal(found.distances, axis1=1, axis2=2), 0, atol=1e-6)


def test_recorded_models_are_the_replies_to_one_training(folder):
    from bcfl.protocol.requests import Train

    setup = Experiment(scenario=from_table(TABLE), device="cpu")
    federation = setup.federation(Pair("fedavg", 0))
    state = federation.initial_state()
    start = state.hypotheses.best.clusters[0]
    objective = setup.method(setup.scenario.methods[0]).policy.objective
    asked = [Train(data.client, start.key, objective) for data in federation.clients]
    replies = federation.engine.answer(asked, {start.key: start}, 0)
    changes = np.stack(
        [replies[r].mean.numpy() - start.mean(federation.model).numpy() for r in asked]
    )
    lengths = np.linalg.norm(changes, axis=1)
    found = local_models.record(setup, Pair("fedavg", 0), rounds=1)
    expected = changes @ changes.T / np.outer(lengths, lengths)
    np.testing.assert_allclose(found.updates[0], expected, atol=1e-4)
    gaps = np.linalg.norm(changes[:, None] - changes, axis=2)
    np.testing.assert_allclose(found.distances[0], gaps, atol=1e-4)


def test_a_method_with_hypotheses_counts_its_leading_one(folder):
    setup = Experiment(scenario=from_table(TABLE), device="cpu")
    found = local_models.record(setup, Pair("bcfl-mht-4", 0))
    assert len(found.rounds) == 3
    assert (found.clusters >= 0).all()


@pytest.mark.figures
def test_recorded_models_become_part_of_the_report(folder):
    path = local_models.record_into(folder, "wecfl")
    again = LocalModels.read(path)
    assert again.rounds.tolist() == [1, 2, 3]
    pictures = pictures_of(folder)
    assert all(pictures.values())
    assert "neighbours-3-1" in pictures["neighbours"].svg
    assert pictures["neighbours"].svg in write_report(folder).read_text()
    other = local_models.record_into(folder, "fedavg")
    assert other.is_file()
    assert not path.is_file()
    other.write_text("no archive")
    with pytest.raises(ValueError, match="holds no local models"):
        pictures_of(folder)
    other.unlink()


def test_unknown_methods_are_refused(folder):
    with pytest.raises(ValueError, match="unknown method 'wecf'"):
        local_models.record_into(folder, "wecf")
