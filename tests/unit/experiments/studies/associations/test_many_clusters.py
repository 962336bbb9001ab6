"""The study of many clusters at a reduced size."""

from experiments.studies.associations import many_clusters as study


def test_each_method_has_a_row_for_each_draw(monkeypatch, capsys):
    for name, value in {"DATA": "optdigits", "MEMBERS": 4, "SAMPLES": 20}.items():
        monkeypatch.setattr(study, name, value)
    monkeypatch.setattr(study, "found", lambda *case, found=study.found: found(*case, rounds=2))
    study.main(["3", "0,1", "wecfl;bcfl-race-2"])
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[2] for row in rows] == ["`wecfl`", "`bcfl-race-2`"] * 2
    assert all(-1 <= float(row[3]) <= 1 for row in rows)
    prices = [float(row[4].rstrip(" |")) for row in rows]
    assert prices[::2] == [1, 1]
    assert all(1 < price <= 2 for price in prices[1::2])
