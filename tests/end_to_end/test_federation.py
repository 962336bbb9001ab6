"""A SuperLink and four SuperNodes over TLS with node authentication: bits, and strangers."""

import shutil

import pytest

from bcfl.flower import DeploymentFolder
from tests.contract.conftest import everything
from tests.end_to_end.network import loop, state_of

pytest.importorskip("flwr", reason="Flower is not installed")
pytestmark = pytest.mark.slow

FAMILIES = ["wecfl", "bcfl-mht-8", "ifca-cam", "faacl", "bcfl-g"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_deployed_run_has_the_bits_of_the_loop(name, network, tmp_path):
    network.run(method=name, rounds=3, folder=str(tmp_path), wait=600.0)
    assert everything(state_of(tmp_path, name)) == everything(loop(name, 3))
    assert all(row["failures"] == [] for row in DeploymentFolder(tmp_path, name).rows())


def stranger(network, change):
    """What a node of another folder says until it ends or repeats itself."""
    own = network.project.node("stranger")
    shutil.copytree(network.project.node("c0"), own, ignore=shutil.ignore_patterns("flower"))
    change(own)
    network.on_another_port("stranger")
    network.start("stranger", f"exec sh {own}/start.sh")
    return own


def test_a_node_that_trusts_another_authority_does_not_connect(network):
    from experiments.deployment.certificates import Authority

    def changed(own):
        (own / "ca.crt").unlink()
        Authority.new().issue(own, "other", ("localhost",))

    own = stranger(network, changed)
    network.wait_for(
        lambda: "ertificate" in network.log("stranger").partition("Starting")[2], "a refusal"
    )
    assert "SuperNode ID" not in network.log("stranger")
    network.kill("stranger")
    shutil.rmtree(own)
    (network.logs / "stranger").unlink()


def test_a_node_that_is_not_registered_is_refused(network):
    from experiments.deployment.certificates import write_node_key

    def changed(own):
        (own / "node").unlink()
        write_node_key(own)

    own = stranger(network, changed)
    network.wait_for(lambda: network.processes["stranger"].poll() is not None, "a refusal")
    assert "SuperNode ID" not in network.log("stranger")
    network.processes.pop("stranger")
    shutil.rmtree(own)
    (network.logs / "stranger").unlink()
