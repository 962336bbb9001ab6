"""`bcfl preview`: clients by classes, as text and as a figure."""

from dataclasses import replace

import pytest
import tomli_w
from typer.testing import CliRunner

from experiments import datasets, partitions
from experiments.cli import app
from experiments.commands import preview


@pytest.fixture(scope="module")
def digits():
    return datasets.load("optdigits")


def previewed(tmp_path, partition, *arguments):
    table = {
        "name": "tiny",
        "methods": ["fedavg"],
        "seeds": [3, 4],
        "data": {"dataset": "optdigits"},
        "partition": partition,
        "model": {"name": "mlp"},
    }
    path = tmp_path / "tiny.toml"
    path.write_text(tomli_w.dumps(table))
    result = CliRunner().invoke(app, ["preview", str(path), *map(str, arguments)])
    return result.exit_code, result.output.splitlines()


def test_samples_by_client_and_class(tmp_path):
    code, lines = previewed(tmp_path, {"kind": "rotated", "clients": 8, "samples_per_client": 50})
    assert code == 0
    sizes = "8 clients · 4 hidden groups · rotated · 400 samples, 1397 left out"
    assert lines[0] == f"tiny, seed 3   optdigits · {sizes}"
    drawn = partitions.rotated(datasets.load("optdigits"), clients=8, seed=3, samples_per_client=50)
    for client, counts, line in zip(drawn, drawn.class_counts(), lines[2:], strict=False):
        name, group, train, test, *held = line.split()
        assert (name, int(group)) == (client.client, client.group)
        assert (int(train), int(test)) == tuple(client.num_samples[v] for v in ("train", "test"))
        assert list(map(int, held)) == counts.tolist()
    turns = enumerate((0, 90, 180, 270))
    assert lines[10:14] == [f"group {group}: rotated by {angle}°" for group, angle in turns]
    assert lines[-1] == f"{drawn.num_left_out} samples above samples_per_client"


def test_streams_show_the_concept_of_each_step(tmp_path):
    code, lines = previewed(tmp_path, {"kind": "stream", "clients": 4, "steps": 6}, "--seed", 4)
    assert code == 0
    assert "seed 4" in lines[0]
    assert all(line.split()[1] == "001100" for line in lines[2:6])
    assert lines[6:] == ["concept 0: original labels", "concept 1: labels shifted by 1"]
    sizes = [sum(map(int, line.split()[2:4])) for line in lines[2:6]]
    assert sum(sizes) == 1797


def test_concepts_that_do_not_occur_and_many_empty_classes_are_not_shown(digits):
    short = partitions.stream(digits, clients=4, steps=2)
    assert preview.legend(short) == ["concept 0: original labels"]
    many = replace(partitions.iid(digits, clients=3), num_classes=62)
    lines = preview.rows(many)
    assert lines[0].split()[-1] == "y=9"
    assert lines[-1] == "52 classes without samples are not shown"


def test_names_of_classes_are_listed_unless_they_are_the_numbers(digits):
    numbered = replace(digits, class_names=tuple("0123456789"))
    assert preview.class_legend(partitions.iid(numbered, clients=3)) == []
    named = replace(digits, class_names=("zero", *"123456789"))
    (line,) = preview.class_legend(partitions.iid(named, clients=3))
    assert line.startswith("classes of optdigits: 0 zero, 1 1, 2 2")
    many = replace(partitions.iid(digits, clients=3), class_names=tuple("abcdefghijklmnopqrstuvw"))
    assert preview.class_legend(many)[0].endswith("19 t, ... (23 in all)")


def test_many_clients_are_cut_and_drawn(tmp_path):
    out = tmp_path / "who.svg"
    code, lines = previewed(tmp_path, {"kind": "iid", "clients": 70}, "--out", out)
    assert code == 0
    assert "... and 10 more clients" in lines
    assert lines[-1] == str(out)
    assert "70 clients" in out.read_text()
    code, lines = previewed(tmp_path, {"kind": "iid", "clients": 7}, "--out", "who.txt")
    assert (code, lines) == (2, ["bcfl: --out must end in .svg, .png or .pdf, got 'who.txt'"])
