"""Work of FAACL grows as its appendix says."""

from experiments.studies import support_complexity
from experiments.studies.support_complexity import work_of


def test_the_first_test_compares_all_pairs_and_supporters_train():
    work = work_of("faacl", 6, 8)
    first = next(tests for tests in work.tests if tests)
    assert first == max(work.tests)
    assert first == 6 * 5
    assert max(work.trainings) <= 6 * 6
    assert work_of("fedavg", 6, 8).trainings == (6,) * 8


def test_table(capsys):
    support_complexity.main((4,), 6)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(lines) == 1 + len(support_complexity.METHODS)
    assert "n (n - 1)" in lines[0]
