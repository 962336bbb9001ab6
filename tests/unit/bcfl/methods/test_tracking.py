"""Which proposals `bcfl-mht-M` makes, and how many clusters it begins with, are settings."""

import pytest

from bcfl import Federation
from bcfl.methods import build
from bcfl.trackers.proposals import Birth, Death, Merge, SplitAndFree
from tests.recipes import built


def proposed(**settings):
    return [type(p) for p in build("bcfl-mht-4", **settings).tracker.proposals]


def test_what_has_paid_is_proposed_by_itself():
    assert proposed(num_clusters=3) == [SplitAndFree]
    assert proposed(num_clusters="auto") == [Birth, SplitAndFree, Death]


def test_moves_are_switched_on_one_by_one():
    assert proposed(num_clusters=3, moves=("split",)) == [SplitAndFree]
    assert proposed(num_clusters="auto", moves=("merge", "birth")) == [Birth, Merge]
    assert proposed(num_clusters="auto", moves=()) == []


def test_an_unknown_number_of_clusters_begins_with_eight_by_itself():
    assert build("bcfl-mht-4", num_clusters="auto").num_clusters == 8


@pytest.mark.parametrize("first", [1, 6])
def test_an_unknown_number_of_clusters_begins_with_few_or_many(first):
    told = dict(num_clusters="auto", first_clusters=first, moves=("birth", "merge"))
    method = build("bcfl-mht-4", **told)
    assert method.num_clusters == first
    assert method.policy.judge == "held_out"
    assert method.validation == 0.25


@pytest.mark.parametrize("move", ["birth", "death", "merge"])
def test_a_known_number_of_clusters_stays(move):
    with pytest.raises(ValueError, match=f"{move!r} changes the number .* must be 'auto', got 4"):
        build("bcfl-mht-4", num_clusters=4, moves=("split", move))


def test_other_moves_and_no_first_cluster_are_refused():
    with pytest.raises(
        ValueError, match=r"moves of bcfl-mht-4 must be .*'split' or .*, got \('jump',\)"
    ):
        build("bcfl-mht-4", moves=("jump",))
    with pytest.raises(
        ValueError, match="first_clusters must be a whole number of at least 1, got 0"
    ):
        build("bcfl-mht-4", num_clusters="auto", first_clusters=0)
    with pytest.raises(ValueError, match="judge must be 'held_out' where num_clusters is 'auto'"):
        build("bcfl-mht-4", num_clusters="auto", judge="training")


@pytest.mark.parametrize("name", ["bcfl-mht-4", "bcfl-mht-4-w"])
def test_an_unknown_number_begins_with_no_more_clusters_than_clients(make_client, linear, name):
    """One sample set aside of each; the run may end with any number that the clients allow."""
    clients = [make_client(f"c{i}", 8) for i in range(3)]
    method = built(name, num_clusters="auto")
    run = Federation(clients, linear, method, device="cpu").run(3)
    assert run.state.history[0].associations[0].num_clusters == 3
    assert 1 <= run.hypotheses.best.association.num_clusters <= 8
