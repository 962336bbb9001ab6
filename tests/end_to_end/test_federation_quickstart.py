"""The first steps of the page on federations, as they stand there, from nothing."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bcfl.flower import DeploymentFolder

pytest.importorskip("flwr", reason="Flower is not installed")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "federation.md").read_text()
STEPS = re.findall(r"```sh\n(pip install .*?)```", PAGE, flags=re.DOTALL)[0]
(STOP,) = re.findall(r"`(kill .*?)`", PAGE)
INSTALL, *COMMANDS = STEPS.splitlines()
PORTS = (8000, 9101, 9102, 9103)


def is_taken(port):
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.skipif(any(map(is_taken, PORTS)), reason="a port of the trial is taken")
def test_three_nodes_learn_for_five_rounds_over_tls(tmp_path):
    assert INSTALL == "pip install 'bcfl[flower]'"
    paths = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    shell = ["bash", "-c", "\n".join(("set -m", f"trap '{STOP}; wait' EXIT", *COMMANDS))]
    environment = os.environ | {"PATH": paths, "PYTHONPATH": str(ROOT)}
    with (tmp_path / "log").open("w") as log:
        done = subprocess.run(shell, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    said = (tmp_path / "log").read_text(errors="replace")
    assert done.returncode == 0, said
    rows = DeploymentFolder(tmp_path / "trial" / "run", "bcfl-mht-8").rows()
    assert [row["participants"] for row in rows] == [3] * 5
    assert all(row["failures"] == [] for row in rows)
    assert "round    5   3 clients took part, 3 connected" in said
    assert not any(map(is_taken, PORTS))
