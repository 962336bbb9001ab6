"""The table of requests and replies in the tutorial on policies is what clients answer."""

import re
from dataclasses import dataclass, fields
from inspect import isabstract
from pathlib import Path

import pytest

from bcfl import Objective, PredictionRule, protocol
from bcfl.policies import Ranking, candidate
from bcfl.protocol import (
    BestModels,
    Describe,
    Evidence,
    Exchange,
    Features,
    HeldOutLosses,
    Loss,
    PairedSupport,
    Predictions,
    Score,
    Statistic,
    Train,
)
from posteriors.predictive import TuningGrid
from tests.contract.conftest import federation_of

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "policy.md"
ROW = re.compile(r"^\| `(Score|Train|Describe)\((.*?)\)`.*? \| `(\w+)`(.*?) \| (.*) \|$", re.M)
OBJECTIVE = Objective(local_steps=1)
WEIGHTS = (0.5, 0.5)
HELD_OUT = HeldOutLosses(WEIGHTS, PredictionRule(predictive="plug-in"), TuningGrid((1.0,), (1.0,)))
STATISTICS = [
    Loss(),
    Evidence(),
    Features(),
    BestModels(),
    PairedSupport(),
    Predictions(WEIGHTS),
    HELD_OUT,
]


@dataclass(frozen=True)
class Asks:
    """Asks one client for all that there is, and keeps the replies."""

    kept: dict
    num_clusters: int = 2
    objective: Objective = OBJECTIVE

    def associate(self, hypothesis, context):
        client, keys = context.participants[0], tuple(one.key for one in hypothesis.clusters)
        requests = [Score(client=client, models=keys, statistic=one) for one in STATISTICS]
        requests += [Train(client, keys[0], self.objective), Describe(client)]
        replies = yield Exchange.of(requests, hypothesis.clusters)
        for request in requests:
            asked = getattr(request, "statistic", request)
            answer = replies[request]
            by_key = isinstance(answer, dict)
            assert not by_key or set(answer) == set(keys)
            self.kept[type(asked).__name__] = answer[keys[0]] if by_key else answer, by_key
        return Ranking.only(candidate(hypothesis, {client: 0}, self.objective))


@pytest.fixture(scope="module")
def replies():
    asks = Asks({})
    federation_of(asks, executor="loop").run(1)
    return asks.kept


@pytest.fixture(scope="module")
def rows():
    found = {}
    for request, arguments, reply, how, holds in ROW.findall(PAGE.read_text("utf-8")):
        statistic = re.match(r"statistic=(\w+)\(", arguments)
        found[statistic[1] if statistic else request] = reply, "by key" in how, holds
    return found


def test_all_requests_and_public_statistics_are_listed(rows):
    public = (getattr(protocol, name) for name in protocol.__all__)
    statistics = {
        kind.__name__
        for kind in public
        if isinstance(kind, type) and issubclass(kind, Statistic) and not isabstract(kind)
    }
    assert set(rows) == {*statistics, "Train", "Describe"}


@pytest.mark.parametrize(
    "asked", [*(type(one).__name__ for one in STATISTICS), "Train", "Describe"]
)
def test_a_reply_is_of_the_class_and_holds_what_the_table_says(rows, replies, asked):
    reply, by_key, holds = rows[asked]
    answer, is_by_key = replies[asked]
    assert (type(answer).__name__, is_by_key) == (reply, by_key)
    listed = set(re.findall(r"`(\w+)`", holds)) - {"samples"}
    assert listed == {field.name for field in fields(answer)}


def test_a_wrong_attribute_of_a_reply_is_told_with_the_right_ones():
    @dataclass(frozen=True)
    class Wrong(Asks):
        def associate(self, hypothesis, context):
            request = Score(client=context.participants[0], models=(hypothesis.clusters[0].key,))
            replies = yield Exchange.of([request], hypothesis.clusters)
            return replies[request][request.models[0]].loss

    with pytest.raises(AttributeError, match=r"'LossSum' object has no attribute 'loss'") as raised:
        federation_of(Wrong({})).run(1)
    (note,) = raised.value.__notes__
    assert note.startswith("raised in Wrong.associate, test_replies.py:")
    assert note.endswith(" in associate; LossSum has total, standard_error, num_samples")
