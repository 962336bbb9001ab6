"""What is said of the work while it goes on."""

import io
import os
import signal

import pytest
from rich.console import Console

from experiments.config import scenario
from experiments.config.variants import Pair
from experiments.runs.progress import clock, showing_progress

DEMO = scenario.load("demo")


def row(accuracy=0.5, ari=0.25, seconds=1.0):
    return {"accuracy": accuracy, "ari": ari, "seconds": {"total": seconds}}


def said(rows, done=(), rounds=25, tells_agreement=True):
    output = io.StringIO()
    pair = Pair("ifca", 0)
    table = DEMO.table()
    table["federation"]["rounds"] = rounds
    console, chosen = Console(file=output), scenario.from_table(table)
    with showing_progress(console, chosen, tells_agreement=tells_agreement) as callbacks:
        callbacks.on_start(pair, list(done))
        for one in rows:
            callbacks.on_round(pair, one)
    return output.getvalue().splitlines()


def test_a_file_gets_a_line_at_each_fifth_of_the_rounds():
    lines = said([row()] * 25)
    assert [line.split("round")[1].split()[0] for line in lines] == [
        *("5/25", "10/25", "15/25", "20/25", "25/25")
    ]
    assert lines[0] == "ifca        round  5/25   acc  50.0   ARI  0.25   0:00:20 left"
    assert lines[-1] == "ifca        round 25/25   acc  50.0   ARI  0.25   0:00:25"


def test_long_rounds_are_not_passed_over_in_silence():
    lines = said([row(seconds=20.0)] * 4)
    assert [line.split()[2] for line in lines] == ["2/25", "4/25"]


def test_a_resumed_run_says_where_it_stands_and_what_is_not_known_is_left_out():
    lines = said([], done=[row(accuracy=None, ari=None)] * 3)
    assert lines == ["ifca        round  3/25   acc    –   0:00:22 left"]


def test_of_numbers_the_error_is_shown_instead_of_the_accuracy():
    one = {"rmse": 0.51234, "ari": 0.25, "seconds": {"total": 1.0}}
    assert "   RMSE   0.512   ARI  0.25   " in said([one] * 5)[0]
    assert "   acc    –   ARI  0.25   " in said([one | {"rmse": None}] * 5)[0]


def test_agreement_that_tells_nothing_is_left_out():
    lines = said([row()] * 5, tells_agreement=False)
    assert lines == ["ifca        round  5/25   acc  50.0   0:00:20 left"]


def test_the_last_round_is_always_said():
    assert len(said([row()] * 7, rounds=7)) == 7
    assert said([row()] * 11, rounds=11)[-1].split()[2] == "11/11"


def test_a_terminal_gets_bars_and_keeps_a_line_of_what_is_done():
    output = io.StringIO()
    screen = Console(file=output, force_terminal=True, width=100, highlight=False)
    with showing_progress(screen, DEMO) as callbacks:
        callbacks.on_start(Pair("ifca", 0), [])
        for _ in range(25):
            callbacks.on_round(Pair("ifca", 0), row())
    assert "━" * 20 in output.getvalue()
    assert "25/25   acc  50.0   ARI  0.25   0:00:25" in output.getvalue()


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_interrupt_is_a_request_and_the_second_is_not():
    before = signal.getsignal(signal.SIGINT)
    output = io.StringIO()
    with showing_progress(Console(file=output), DEMO) as callbacks:
        assert not callbacks.should_stop()
        interrupt()
        assert callbacks.should_stop()
        assert "stopping after the current round" in output.getvalue()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00:00"), (61.5, "0:01:02"), (7322, "2:02:02")]
)
def test_clock(seconds, text):
    assert clock(seconds) == text
