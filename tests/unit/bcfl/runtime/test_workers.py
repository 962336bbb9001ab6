"""Worker processes leave Ctrl-C to their parent, end with it, and their death is told."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bcfl.runtime import died

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
