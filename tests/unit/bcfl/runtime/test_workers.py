"""Worker processes leave Ctrl-C to their parent, end with it, and their death is told."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

from bcfl.runtime import died, portable

WORKER = """
import os, sys, time
from bcfl.runtime import become_worker
become_worker(int(sys.argv[1]))
print("ready", flush=True)
time.sleep(60)
"""
PARENT = f"""
import os, subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", {WORKER!r}, str(os.getpid())], stdout=-1)
worker.stdout.readline()
print(worker.pid, flush=True)
"""


def test_a_worker_ignores_ctrl_c():
    command = [sys.executable, "-c", WORKER, str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
        worker.stdout.readline()
        worker.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert worker.poll() is None
        worker.kill()


def test_a_worker_ends_with_its_parent():
    command = [sys.executable, "-c", PARENT]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    number, until = int(ran.stdout), time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.kill(number, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")


def test_a_death_says_what_to_try():
    error = died("one of 2 worker processes", "code -9", "workers")
    assert isinstance(error, ChildProcessError)
    expected = "one of 2 worker processes died; .* memory ran out: try fewer workers .code -9."
    with pytest.raises(ChildProcessError, match=expected):
        raise error


class OfTwo(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Changing(Exception):
    """Comes back with other words."""

    def __reduce__(self):
        return Changing, ("others",)


@pytest.mark.parametrize("error", [ValueError("a", 1), KeyError("k"), OSError(2, "no file", "x")])
def test_an_error_that_can_be_sent_is_sent(error):
    assert portable(error) is error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OfTwo("one", "two"), "OfTwo: one and two"),
        (Changing("these"), "Changing: these"),
        (ValueError(threading.Lock()), "ValueError: <unlocked"),
        (SystemExit(0), "SystemExit: 0"),
    ],
)
def test_an_error_that_cannot_be_sent_is_told_with_its_notes(error, words):
    error.add_note("where it was")
    told = portable(error)
    assert type(told) is RuntimeError
    assert str(told).startswith(words)
    assert told.__notes__ == ["where it was"]
    assert str(pickle.loads(pickle.dumps(told))) == str(told)
