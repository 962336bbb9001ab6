"""Schedules follow the plan for the whole run, which is made once and travels with the state."""

import pytest

from bcfl import Federation, Objective
from bcfl.rounds import checkpoint
from tests.recipes import built

OBJECTIVE = Objective(local_steps=3, batch_size=4)


@pytest.fixture
def federation(clients, linear):
    def of(name):
        return Federation(
            clients, linear, built(name, num_clusters=2, objective=OBJECTIVE), device="cpu"
        )

    return of


def bits(run):
    return [p.blocks[-1].gaussian.mean.tolist() for p in run.hypotheses.best.clusters]


@pytest.mark.parametrize("name", ["ifca-cam", "wecfl-con-para", "scl", "bcl"])
def test_a_stop_on_the_way_changes_no_bit(name, federation, tmp_path):
    """The schedules of these are shares of the run."""
    whole = federation(name).run(9)
    part = federation(name).run(3, planned_rounds=9)
    stored = checkpoint.load(checkpoint.save(part.state, tmp_path))
    assert (part.state.planned_rounds, stored.planned_rounds) == (9, 9)
    assert bits(federation(name).run(9, state=stored)) == bits(whole)


def test_without_a_plan_the_rounds_are_it(federation):
    short, planned = (federation("ifca-cam").run(4, planned_rounds=n) for n in (None, 20))
    assert (short.state.planned_rounds, planned.state.planned_rounds) == (4, 20)
    assert len({tuple(m) for m in bits(short)}) == 2
    start = federation("ifca-cam").initial_state().hypotheses.best.clusters
    assert planned.hypotheses.best.clusters[0].blocks[-1].is_zero  # warming up
    assert bits(planned)[1:] == [p.blocks[-1].gaussian.mean.tolist() for p in start[1:]]


def test_rounds_that_are_added_come_after_all_schedules(federation):
    run = federation("ifca-cam").run(4)
    longer = federation("ifca-cam").run(6, state=run.state)
    assert longer.state.planned_rounds == 4
    assert [r.round for r in longer.records] == [5, 6]


def test_the_last_three_tests_are_of_tuned_models_when_the_plan_ends(federation):
    plain, tuned = (federation(f"fedavg{suffix}").run(4) for suffix in ("", "-finetune"))
    early = federation("fedavg-finetune").run(4, planned_rounds=7)

    def losses(run):
        return [{c: s.nll for c, s in r.evaluations.items()} for r in run.records]

    assert losses(early) == losses(plain)
    same = [one == other for one, other in zip(losses(tuned), losses(plain), strict=True)]
    assert same == [True, False, False, False]


@pytest.mark.parametrize("asked", [2, 3.5])
def test_a_plan_covers_the_rounds(asked, federation):
    with pytest.raises(ValueError, match=f"planned_rounds must be .* 3 rounds, got {asked}"):
        federation("fedavg").run(3, planned_rounds=asked)


def test_a_plan_is_not_changed_on_the_way(federation):
    state = federation("fedavg").run(2, planned_rounds=5).state
    message = "planned_rounds must be 5, for which the first 2 rounds of this run were planned"
    with pytest.raises(ValueError, match=f"{message}, got 7"):
        federation("fedavg").run(3, planned_rounds=7, state=state)
