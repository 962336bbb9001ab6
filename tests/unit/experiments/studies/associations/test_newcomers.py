"""The study of new clients' associations at a reduced size."""

import numpy as np

from experiments.studies.associations import newcomers as study


def test_new_clients_are_paired_with_all_of_the_federation(monkeypatch, capsys):
    monkeypatch.setattr(study, "ROUNDS", 2)
    study.main(["8", "2", "bcfl-race-2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[3].strip() for line in lines[2:]] == ["1", "3", "10"]
    known, new = study.divided(8, 0)
    assert [len(known), len(new)] == [40, 20]
    assert {len(client.views["train"]) for client in known} == {8}


def test_errors_of_opposite_draws_cancel_in_the_pooled_error():
    half, yes = np.full(4, 0.5), np.ones(4, dtype=bool)
    text = study.row("x", [(half, yes), (half, ~yes)])
    assert "0.500 ± 0.000" in text
    assert text.endswith("| 0.000 ± 0.000 |")
