"""The folder that `bcfl federation init` writes, and the lines of `bcfl federation status`."""

import os
import re
import shutil
import stat
import subprocess
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from bcfl.executors import Privacy
from bcfl.flower import Deployment, read_client
from experiments.cli import app
from experiments.deployment import Project, status_lines, write_project
from experiments.runs.restore import open_runs
from tests.contract.conftest import MODEL, clients_of, recipe_of
from tests.fake_grid import FakeGrid, reaching

NAMES = ("anna", "ben")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    pytest.importorskip("flwr", reason="Flower is not installed")
    written = Project(folder=tmp_path_factory.mktemp("trial"), clients=NAMES, host="a.example")
    write_project(written)
    return written


def test_without_flower_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr("experiments.deployment.project.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["federation", "init", str(tmp_path / "trial")])
    assert result.exit_code == 2
    assert "pip install 'bcfl[flower]'" in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clients": ("a", "a")}, "distinct names"),
        ({"clients": ("a; rm",)}, "letters, digits"),
        ({"clients": ("a",), "host": "$(x)"}, "letters, digits"),
        ({"clients": ("a",), "port": 0}, "port must lie"),
    ],
)
def test_names_and_ports_are_checked(options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        Project(folder=tmp_path, **options)


def test_a_folder_that_holds_something_is_left_alone(project):
    with pytest.raises(ValueError, match="give a new or empty folder"):
        write_project(project)


def test_secrets_are_their_owners_alone(project):
    secrets = [project.folder / "server" / name for name in ("ca.key", "server.key")] + [
        project.node(name) / key for name in NAMES for key in ("node", "loopback.key")
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets} == {0o600}


def test_certificates_are_of_one_authority_and_keys_of_a_nist_curve(project):
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    server = project.folder / "server"
    authority = x509.load_pem_x509_certificate((server / "ca.crt").read_bytes())
    issued = x509.load_pem_x509_certificate((server / "server.crt").read_bytes())
    issued.verify_directly_issued_by(authority)
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example", "localhost"]
    for name in NAMES:
        public = serialization.load_ssh_public_key((project.node(name) / "node.pub").read_bytes())
        private = serialization.load_ssh_private_key(
            (project.node(name) / "node").read_bytes(), None
        )
        assert private.public_key() == public
        assert public.curve.name == "secp384r1"


def test_the_app_builds_the_federation_that_its_settings_describe(project):
    settings = tomllib.loads((project.app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    names = {}
    exec((project.app / "federation.py").read_text(), names)
    plan = names["deployment"](settings["config"])
    assert plan.clients == NAMES
    data = read_client({"client": "anna", "data": str(project.node("anna") / "data.npz")})
    assert plan.site(data).clients == ("anna",)


def test_a_private_app_has_nodes_noise_what_they_send(tmp_path):
    pytest.importorskip("flwr", reason="Flower is not installed")
    private = Project(folder=tmp_path / "trial", clients=NAMES, privacy=Privacy(clip=0.5))
    write_project(private)
    config = tomllib.loads((private.app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    table, names = config["config"].pop("privacy"), {}
    exec((private.app / "federation.py").read_text(), names)
    plan = names["deployment"](config["config"] | {f"privacy.{k}": v for k, v in table.items()})
    assert plan.privacy == Privacy(clip=0.5)
    assert plan.method.policy.objective.curvature == "samples"


def test_nodes_are_registered_once_as_soon_as_the_server_listens(project, tmp_path):
    """A stand-in for Flower: it does not listen at first, and knows one of the two keys."""
    flower, calls = tmp_path / "flwr", tmp_path / "calls"
    flower.write_text(
        f"""#!/bin/sh
echo $3 >> {calls}
[ $(wc -l < {calls}) = 1 ] && echo 'Connection to the SuperLink is unavailable.' && exit 1
case $3 in *ben*) echo '| Public key already in use. |' && exit 1; esac
echo registered
"""
    )
    flower.chmod(0o755)
    register = ["sh", str(project.folder / "register.sh")]
    paths = os.environ | {"PATH": os.pathsep.join((str(tmp_path), os.environ["PATH"]))}
    done = subprocess.run(register, env=paths, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["registered", "ben is registered already"]
    flower.write_text("#!/bin/sh\necho 'the key is of no known kind' && exit 1\n")
    done = subprocess.run(register, env=paths, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "the key is of no known kind\n")


def run_of(name, folder, clients=3):
    """A run of three clients, of whom some are connected."""
    data = clients_of((8, 3, 5))
    plan = Deployment(
        clients=tuple(own.client for own in data),
        model=MODEL,
        method=recipe_of(name),
        rounds=2,
        folder=folder,
    )
    sites = {number: plan.site(own) for number, own in enumerate(data[:clients])}
    grid = FakeGrid({number: lambda setup, s=site: s for number, site in sites.items()})
    plan.run(reaching(grid, SimpleNamespace(model=plan.network)), settings={"clients": "c0,c1,c2"})
    return data


def test_status_shows_rounds_failures_and_the_checkpoint(tmp_path):
    run_of("wecfl", tmp_path / "run", clients=2)
    lines = status_lines(tmp_path / "run")
    assert lines[0].startswith("round    1   2 clients took part, 2 connected   accuracy ")
    assert "failed" in lines[2]
    assert "client 'c2' is not connected (missing)" in lines[2]
    assert lines[-1].startswith("resumes  from round-000002")
    shown = CliRunner().invoke(app, ["federation", "status", str(tmp_path)])
    assert shown.output.splitlines() == lines
    with pytest.raises(ValueError, match="holds no round"):
        status_lines(tmp_path)
    with pytest.raises(ValueError, match=r"nope doesn't exist; give a folder"):
        status_lines(tmp_path / "nope")


def test_status_of_numbers_shows_their_error(tmp_path):
    run_of("wecfl", tmp_path, clients=3)
    (path,) = tmp_path.rglob("metrics.jsonl")
    logged = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'"accuracy": [^,]+,', '"rmse": 0.512,', logged), encoding="utf-8")
    assert "   RMSE 0.512   clusters " in status_lines(tmp_path)[0]


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """A federation of two methods whose app and samples lie beside its run folder."""
    folder = tmp_path_factory.mktemp("trial")
    for name in ("fedavg", "faacl"):
        clients = run_of(name, folder / "run")
    (folder / "app").mkdir()
    (folder / "app" / "federation.py").write_text(APP)
    for own in clients:
        node = folder / "nodes" / own.client
        node.mkdir(parents=True)
        np.savez(
            node / "data.npz",
            **{f"x_{name}": view.inputs.numpy() for name, view in own.views.items()},
            **{f"y_{name}": view.targets.numpy() for name, view in own.views.items()},
        )
    return folder


APP = """
from bcfl.flower import Deployment
from tests.contract.conftest import MODEL, recipe_of

def deployment(config):
    names = tuple(config["clients"].split(","))
    return Deployment(clients=names, model=MODEL, method=recipe_of("fedavg"), rounds=2, folder=".")
"""


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["compare"], "fedavg"),
        (["report"], "report.html"),
        (["graph", "--method", "faacl", "--kind", "support"], "graphml"),
        (["explain", "--method", "fedavg"], "c2"),
        (["uncertainty", "--method", "fedavg", "--no-tune"], "plug-in"),
        (["federation", "status"], "round    2   3 clients took part"),
    ],
)
def test_commands_read_the_folder_of_a_deployment_as_any_other(command, shown, trial):
    result = CliRunner().invoke(app, [*command, str(trial / "run")])
    assert result.exit_code == 0, result.output
    assert shown in result.output


def test_runs_of_a_deployment_open_as_any_other(trial):
    runs = open_runs(trial / "run")
    assert sorted(runs) == [("faacl", 0), ("fedavg", 0)]
    run = runs["fedavg", 0].run
    assert run.predict("c0", clients_of((8, 3, 5))[0].views["test"].inputs).mean.shape == (5, 2)


def test_samples_that_are_elsewhere_are_missed_in_words(trial, tmp_path):
    shutil.copytree(trial / "run", tmp_path / "run")
    result = CliRunner().invoke(app, ["explain", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert "stay with its nodes" in " ".join(result.output.split())
    resumed = CliRunner().invoke(app, ["resume", str(tmp_path / "run")])
    assert "bcfl federation resume" in " ".join(resumed.output.split())
