"""Whatever goes wrong in the work for one client is that client's failure; the others go on.

Reported to neighbouring projects: one client's exception, or an `exit()` in a library, ends the run
of all.
"""

import os
import pickle
import signal
from itertools import product
from traceback import format_exception

import pytest
import torch
from torch import nn

from bcfl import ClientData, View
from bcfl.executors import ExecutorConfig
from bcfl.executors.attempts import attempted
from bcfl.protocol.answers import TracebackText
from bcfl.rounds import FailingClientWarning, UntrainedWarning

MARK = 777.0


class OfTwo(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def raising(kind):
    """A network that raises where it sees a marked sample."""

    class Raising(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2)

        def forward(self, x):
            if len(x) > 1 and bool((x == MARK).any()):
                raise OfTwo("one", "two") if kind is OfTwo else kind("one and two")
            return self.last(x)

    return Raising


def with_marked(clients, arrays, names):
    """The clients, those of some names with a marked training sample."""
    others = [data for data in clients() if data.client not in names]
    for name in names:
        x, y, group = arrays()[int(name[1:])]
        x[3] = MARK
        others.append(ClientData.from_arrays(name, (x[:30], y[:30]), (x[30:], y[30:]), group))
    return others


@pytest.mark.parametrize(
    ("name", "kind", "executor"),
    [
        *product(["ifca", "bcfl-g"], [OfTwo, SystemExit], ["loop", "batched"]),
        ("ifca", SystemExit, "processes"),
        ("bcfl-g", OfTwo, "processes"),
    ],
)
def test_one_client_is_left_out(
    clients, arrays, mlp, federation, parameters, failures, name, kind, executor
):
    choice = ExecutorConfig(executor, workers=1 if executor == "processes" else None)
    given = with_marked(clients, arrays, ["c2"])
    run = federation(given, mlp(raising(kind)), name, executor=choice).run(rounds=2)
    assert bool(torch.isfinite(parameters(run)).all())
    assert all("one and two" in text and text.startswith("c2: ") for text in failures(run))
    assert all(any("c2" in text for text in r.ledger.failures) for r in run.records)
    assert run.records[-1].evaluations.keys() == {"c0", "c1", "c2", "c3", "c4", "c5"}
    assert run.association_probabilities()[2].sum() in (0.0, pytest.approx(1.0))


def test_the_others_learn_what_they_would_without_it(clients, arrays, mlp, federation, parameters):
    network = raising(OfTwo)
    without = [data for data in clients() if data.client != "c2"]
    runs = [
        federation(given, mlp(network), "fedavg").run(rounds=2)
        for given in (with_marked(clients, arrays, ["c2"]), without)
    ]
    torch.testing.assert_close(*map(parameters, runs))


def test_a_client_that_kills_its_process_is_left_out(
    clients, arrays, mlp, federation, parameters, failures
):
    class Kills(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2)

        def forward(self, x):
            if len(x) > 1 and bool((x == MARK).any()):
                os.kill(os.getpid(), signal.SIGKILL)
            return self.last(x)

    without = [data for data in clients(4) if data.client != "c2"]
    given = [data for data in with_marked(clients, arrays, ["c2"]) if data.client < "c4"]
    choice = ExecutorConfig("processes", workers=1)
    with pytest.warns(RuntimeWarning, match="worker processes died.*one at a time"):
        run = federation(given, mlp(Kills), "fedavg", executor=choice).run(rounds=1)
    assert any(text.startswith("c2: ") and "died" in text for text in failures(run))
    assert all(text.startswith("c2: ") for text in failures(run))
    alone = federation(without, mlp(Kills), "fedavg", executor="loop").run(rounds=1)
    assert torch.equal(parameters(run), parameters(alone))


def test_an_interruption_ends_the_run(clients, arrays, mlp, federation):
    given = with_marked(clients, arrays, ["c2"])
    with pytest.raises(KeyboardInterrupt):
        federation(given, mlp(raising(KeyboardInterrupt)), "fedavg").run(rounds=1)


@pytest.mark.parametrize(
    ("executor", "cause"), [("loop", OfTwo), ("batched", OfTwo), ("processes", TracebackText)]
)
@pytest.mark.filterwarnings("ignore:.*one client at a time:RuntimeWarning")
def test_a_network_that_fails_for_all_clients_ends_the_run(
    clients, mlp, federation, executor, cause
):
    """Reported by a user: 200 rounds of failed requests, and no traceback."""

    class Raises(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2)

        def forward(self, x):
            if self.training and len(x) > 5:
                raise OfTwo("one", "two")
            return self.last(x)

    choice = ExecutorConfig(executor, workers=1 if executor == "processes" else None)
    prepared = federation(clients(2), mlp(Raises), "ifca", executor=choice)
    words = r"all 2 clients .* failed alike, .*; c0: OfTwo: one and two, at .*:\d+ in forward"
    with pytest.raises(ValueError, match=words) as told:
        prepared.run(rounds=2)
    assert type(told.value.__cause__) is cause
    assert "in forward" in "".join(format_exception(told.value.__cause__))


class Untested(nn.Module):
    """Raises an error on some samples of a test, in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        if not self.training and len(x) > 5 and self.fails(x):
            raise OfTwo("one", "two")
        return self.last(x)

    def fails(self, x):
        return True


@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.filterwarnings("ignore:.*one client at a time:RuntimeWarning")
def test_a_network_that_fails_in_all_tests_ends_the_run_after_the_first_round(
    clients, mlp, federation, executor
):
    prepared = federation(clients(2), mlp(Untested), "fedavg", executor=executor)
    words = (
        r"all 2 clients .* the test after the first round failed alike, so that predictions have "
        r"no scores; c0: OfTwo: one and two, at .*:\d+ in forward, when tested on view 'test'; "
        r".*evaluate=False"
    )
    with pytest.raises(ValueError, match=words) as told:
        prepared.run(rounds=2)
    assert type(told.value.__cause__) is OfTwo
    untested = federation(clients(2), mlp(Untested), "fedavg", executor=executor, evaluate=False)
    assert len(untested.run(rounds=2).records) == 2
    first = untested.run(rounds=1).state
    with pytest.warns(FailingClientWarning, match=r"whose test failed in the only round"):
        prepared.run(rounds=2, state=first)


def test_a_client_whose_test_fails_is_told_apart_from_one_whose_training_fails(
    clients, arrays, mlp, federation, failures
):
    class Raising(Untested):
        def fails(self, x):
            return bool((x == MARK).any())

    x, y, _ = arrays()[2]
    x[35] = MARK
    others = [data for data in clients() if data.client != "c2"]
    given = [*others, ClientData.from_arrays("c2", (x[:30], y[:30]), (x[30:], y[30:]))]
    words = r"clients whose test failed in each .*: 'c2'; c2: .*; their training does not depend on"
    with pytest.warns(FailingClientWarning, match=words) as told:
        run = federation(given, mlp(Raising), "fedavg", executor="loop").run(rounds=2)
    assert len(told) == 1
    assert all(text.endswith(", when tested on view 'test' (crashed)") for text in failures(run))
    assert run.records[-1].evaluations.keys() == {"c0", "c1", "c3", "c4", "c5"}


def test_some_clients_that_fail_alike_do_not_end_the_run(
    clients, arrays, mlp, federation, failures
):
    names = [f"c{index}" for index in range(5)]
    given = with_marked(clients, arrays, names)
    run = federation(given, mlp(raising(OfTwo)), "fedavg", executor="loop").run(rounds=1)
    assert {text.partition(":")[0] for text in failures(run)} == set(names)
    assert all("at test_client_errors.py:" in text for text in failures(run))


def test_other_faults_at_each_client_do_not_end_the_run(clients, mlp, federation):
    """Whose cause may be their samples."""

    class Raises(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2)

        def forward(self, x):
            if self.training and len(x) > 5:
                raise KeyError("1") if float(x.sum()) > 0 else IndexError("1")
            return self.last(x)

    given = clients(2)
    moved = [(given[0], 5.0), (given[1], -5.0)]
    given = [
        ClientData(
            data.client,
            {name: View(view.inputs + shift, view.targets) for name, view in data.views.items()},
        )
        for data, shift in moved
    ]
    with pytest.warns(UntrainedWarning, match="no client sent a usable model"):
        federation(given, mlp(Raises), "ifca", executor="loop").run(rounds=1)


def test_a_network_that_cannot_be_trained_is_refused(clients, mlp, federation):
    class Raises(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 2)

        def forward(self, x):
            return self.lost(x) if self.training else self.last(x)

    with pytest.raises(ValueError, match=r"fails in training, on 3 samples .*no attribute 'lost'"):
        federation(clients(2), mlp(Raises), "ifca")

    class Pairs(Raises):
        def forward(self, x):
            return (self.last(x), x) if self.training else self.last(x)

    with pytest.raises(ValueError, match=r"must give \(3, 2\) numbers .* in training .*got tuple"):
        federation(clients(2), mlp(Pairs), "ifca")


def test_a_failure_reaches_another_process_with_its_traceback():
    def work():
        raise OfTwo("one", "two")

    failure = attempted(work)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(failure))))
    assert again == failure
    assert isinstance(again.error, TracebackText)
    assert 'raise OfTwo("one", "two")' in str(again.error)


def test_batches_that_fail_are_done_one_client_at_a_time(
    clients, mlp, federation, parameters, monkeypatch
):
    alone = federation(clients(), mlp(), "ifca", executor="loop").run(rounds=1)
    prepared = federation(clients(), mlp(), "ifca", executor="batched")

    def failing(*_):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(type(prepared.engine.network), "gradients", failing)
    with pytest.warns(RuntimeWarning, match="one client at a time.*out of memory"):
        run = prepared.run(rounds=1)
    torch.testing.assert_close(parameters(run), parameters(alone), rtol=1e-4, atol=1e-6)
