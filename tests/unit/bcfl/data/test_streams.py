"""Data that change over time."""

import numpy as np
import pytest

from bcfl import ClientData, Federation, Objective
from bcfl.data import View
from bcfl.data.streams import Schedule, at_step, num_steps, view_name
from bcfl.policies import FedAvg


def stream(name="a"):
    """Three steps; nothing new to train on in the last."""
    random = np.random.default_rng(0)

    def view(count):
        return View.from_arrays(random.normal(size=(count, 3)), random.integers(2, size=count))

    views = {"train": view(4), "test": view(2), "train:1": view(5), "test:1": view(3)}
    return ClientData(name, {**views, "test:2": view(1)})


def test_names_of_views():
    assert [view_name("train", step) for step in (0, 1, 12)] == ["train", "train:1", "train:12"]


def test_a_step_shows_its_own_samples_and_the_past_as_memory():
    data = stream()
    assert num_steps([data]) == 3
    assert at_step(data, 0).num_samples == {"train": 4, "test": 2}
    assert at_step(data, 1).num_samples == {"train": 5, "test": 3, "memory:0": 4}
    assert at_step(data, 2).num_samples == {"train": 5, "test": 1, "memory:0": 4, "memory:1": 5}


def test_validation_samples_of_the_past_are_kept():
    """What a client had is remembered of each step, also where it brought nothing new."""
    data = stream()
    held_out = {"validation": data.views["test"], "validation:1": data.views["test:1"]}
    data = ClientData("a", {**data.views, **held_out, "train:3": data.views["train"]})
    assert "validation-memory:0" not in at_step(data, 0).views
    views = at_step(data, 3).views
    kept = {name: views[f"validation-memory:{name}"] for name in range(3)}
    first, second = held_out.values()
    assert kept == {0: first, 1: second, 2: second}


def test_rounds_are_divided_among_the_steps():
    schedule = Schedule(3, 7)
    assert [schedule.rounds(step) for step in range(3)] == [3, 2, 2]
    assert [schedule.step(round) for round in range(8)] == [0, 0, 0, 1, 1, 2, 2, 2]
    assert [round for round in range(8) if schedule.begins(round)] == [0, 3, 5]


def test_fewer_rounds_than_steps_are_refused():
    with pytest.raises(ValueError, match="num_rounds must be at least the 3 time steps"):
        Schedule(3, 2)


def test_a_federation_trains_on_the_samples_of_the_round(linear):
    one = Federation(
        [stream("a"), stream("b")], linear, FedAvg(Objective(local_steps=1)), device="cpu"
    )
    run = one.run(3)
    tested = [record.evaluations["a"].num_samples for record in run.records]
    assert tested == [2, 3, 1]
    assert run.state.client_info["a"].num_samples["train"] == 5
