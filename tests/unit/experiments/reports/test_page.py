"""Names on pages, and pages of several runs."""

import re
from pathlib import Path

import pytest

from experiments.reports import compare_page
from experiments.reports.compare import lettered
from experiments.reports.page import breakable


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bcfl-mht-8", ["bcfl-mht-8"]),
        ("A/ifca", ["A/", "ifca"]),
        ("training.local_steps", ["training.", "local_", "steps"]),
        ("ifca:weight=0.5", ["ifca:", "weight=", "0.5"]),
        ("a<b", ["a&lt;b"]),
    ],
)
def test_names_break_after_signs_and_not_within_words(name, parts):
    assert re.findall("<span>(.*?)</span>", breakable(name)) == parts


def test_runs_have_letters():
    folders = [Path(str(number)) for number in range(28)]
    letters = lettered(folders)
    assert list(letters)[:2] + list(letters)[25:] == ["A", "B", "Z", "A1", "B1"]
    assert list(letters.values()) == folders


def test_a_page_of_several_runs_names_methods_by_the_letters_of_its_key(make_run):
    page = compare_page.render([make_run(), make_run()])
    key = re.findall(r'<th scope="row">(.)</th><td>run</td>', page)
    assert key == ["A", "B"]
    assert page.count("<span>A/</span><wbr><span>fedavg</span>") == 1
    assert "<span>A/" not in compare_page.render([make_run()])
