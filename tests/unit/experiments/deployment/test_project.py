"""The folder that `bcfl federation init` writes, and the lines of `bcfl federation status`."""

import stat
import tomllib
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from bcfl.flower import Deployment, read_client
from experiments.cli import app
from experiments.deployment import Project, status_lines, write_project
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


def test_status_shows_rounds_failures_and_the_checkpoint(tmp_path):
    clients = clients_of((8, 3, 5))
    plan = Deployment(
        clients=tuple(data.client for data in clients),
        model=MODEL,
        method=recipe_of("wecfl"),
        rounds=2,
        folder=tmp_path / "run",
    )
    sites = {number: plan.site(data) for number, data in enumerate(clients[:2])}
    grid = FakeGrid({number: lambda setup, s=site: s for number, site in sites.items()})
    plan.run(reaching(grid, SimpleNamespace(model=plan.network)))
    lines = status_lines(tmp_path / "run")
    assert lines[0].startswith("round    1   2 clients took part, 2 connected   accuracy ")
    assert "failed" in lines[2]
    assert "client 'c2' is not connected (missing)" in lines[2]
    assert lines[-1].startswith("resumes  from round-000002")
    shown = CliRunner().invoke(app, ["federation", "status", str(tmp_path)])
    assert shown.output.splitlines() == lines
    with pytest.raises(ValueError, match="holds no round"):
        status_lines(tmp_path)
