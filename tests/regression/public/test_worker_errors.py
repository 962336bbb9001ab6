"""Worker processes take networks of a script as it is, and errors come back as what they are.

Reported to neighbouring projects: an exception that cannot be unpickled looks like a dead worker.
"""

import json

import pytest

SCRIPT = """
import json
from bcfl.executors.pool.workers import Workers
pool = Workers.shared(1)  # one for all runs
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 2)
    def forward(self, x):
        return self.last(x)
class OfTwo(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")
class Raises(Small):
    def forward(self, x):
        if len(x) > 5:
            raise OfTwo("one", "two")
        return self.last(x)
def run(build):
    choice = bcfl.executors.ExecutorConfig("processes", workers=1)
    try:
        done = federation_of(clients_of(2), mlp_of(build), "ifca", executor=choice).run(rounds=1)
    except Exception as error:
        return type(error).__name__, str(error)
    return "", parameters_of(done).tolist()
alone = federation_of(clients_of(2), mlp_of(lambda: Small()), "ifca").run(rounds=1)
print(json.dumps({
    "trained": run(lambda: Small()),
    "alone": parameters_of(alone).tolist(),
    "error": run(lambda: Raises()),
}))
"""


@pytest.fixture(scope="module")
def outcome(child):
    return json.loads(child(SCRIPT, timeout=120).stdout)


def test_networks_of_a_script_are_trained(outcome):
    error, found = outcome["trained"]
    assert not error, found
    assert found == pytest.approx(outcome["alone"], rel=1e-4, abs=1e-5)


def test_an_error_of_several_arguments_is_told(outcome):
    kind, words = outcome["error"]
    assert kind != "ChildProcessError"
    assert "one and two" in words
