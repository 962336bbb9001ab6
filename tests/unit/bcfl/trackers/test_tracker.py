import re
from types import SimpleNamespace

import pytest

from bcfl import Association, HypothesisSet, drive
from bcfl.policies import Ranking
from bcfl.protocol import Exchange, Score
from bcfl.trackers import TrackerInfo, expand
from bcfl.trackers.tracker import rankings_of, stepped

CONTEXT = SimpleNamespace(candidates_per_parent=1, round=4)
HYPOTHESES = [SimpleNamespace(log_weight=0.0, association=Association.unseen(("a", "b"), 1))]


def asks(made):
    yield made
    return Ranking(())


def returns(result):
    yield from ()
    return result


def policy(steps):
    return SimpleNamespace(associate=lambda hypothesis, context: steps)


def score(statistic):
    return Exchange((Score(client="a", models=("m",), statistic=statistic),), {})


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        (None, "associate must be a generator, with a `yield` for"),
        ("labels", "(`yield from ()` if nothing); it returned 'labels'"),
        (returns(None), "associate must return a bcfl.policies.Ranking, got None"),
        (returns("labels"), "associate must return a bcfl.policies.Ranking, got 'labels'"),
        (asks(["a request"]), "must yield a bcfl.protocol.Exchange, got ['a request']"),
        (asks(Exchange(("what?",), {})), "must hold Describe, Score and Train, got 'what?'"),
        (asks(score("label_histogram")), "such as Loss(), got 'label_histogram'"),
    ],
    ids=["none", "text", "returns none", "returns text", "list", "no request", "statistic"],
)
def test_what_a_policy_must_not_do_is_named(steps, match):
    with pytest.raises(TypeError, match=re.escape(match)):
        drive(rankings_of(HYPOTHESES, policy(steps), CONTEXT), {})


def test_errors_of_a_policy_of_ones_own_name_it():
    def fails():
        yield from ()
        raise KeyError("margin")

    with pytest.raises(KeyError, match="margin") as raised:
        drive(rankings_of(HYPOTHESES, policy(fails()), CONTEXT), {})
    (note,) = raised.value.__notes__
    assert re.fullmatch(r"raised in SimpleNamespace.associate, test_tracker.py:\d+ in fails", note)


def test_a_ranking_holds_candidates():
    with pytest.raises(TypeError, match=r"must hold bcfl.policies.candidate\(\.\.\.\), got 'a'"):
        next(iter(Ranking(("a",))))


@pytest.mark.parametrize(
    "read",
    [
        lambda ranking: ranking.first,
        lambda ranking: drive(expand(HYPOTHESES, policy(returns(ranking)), MEMORY, CONTEXT, 1)),
    ],
    ids=["first", "expand"],
)
def test_a_policy_that_ranks_nothing_is_refused(read):
    with pytest.raises(ValueError, match="must rank at least one association, got none"):
        read(Ranking(()))


MEMORY = SimpleNamespace(carried_log_weight=lambda log_weight: log_weight)


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        (None, "step must be a generator.*returned None"),
        (returns(None), "step must return a HypothesisSet and a TrackerInfo, got None"),
        (returns(("hypotheses", TrackerInfo)), "step must return a HypothesisSet and a Tracker"),
        (
            returns((HypothesisSet((), round=4), TrackerInfo(1, None))),
            "hypotheses of the round after context.round, 5, got those of round 4",
        ),
    ],
    ids=["none", "returns none", "returns others", "returns the same round"],
)
def test_what_a_tracker_must_not_do_is_named(steps, match):
    tracker = SimpleNamespace(step=lambda *given: steps)
    state = SimpleNamespace(best=HYPOTHESES[0])
    with pytest.raises(TypeError, match=match):
        drive(stepped(tracker, state, None, None, CONTEXT), {})
