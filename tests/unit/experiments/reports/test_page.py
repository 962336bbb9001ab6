"""Names on pages, and pages of several runs."""

import re
from pathlib import Path
from typing import get_args

import pytest

from bcfl.protocol import PredictiveName
from experiments.reports import compare_page
from experiments.reports.columns import OF_SOME
from experiments.reports.compare import lettered
from experiments.reports.page import breakable
from experiments.reports.results_table import AGREEMENT_COLUMNS, COLUMNS, PRIVACY_COLUMNS
from experiments.reports.terms import better, explained
from experiments.reports.uncertainty_table import CALIBRATION, DETECTION, LABELS

pytestmark = pytest.mark.usefixtures("plain_figures")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("bcfl-mht-8", ["bcfl-mht-8"]),
        ("A/ifca", ["A/ifca"]),
        ("A/wecfl@num_clusters=2", ["A/wecfl@", "num_clusters=2"]),
        ("training.local_steps", ["training.", "local_steps"]),
        ("wecfl@num_clusters=2", ["wecfl@", "num_clusters=2"]),
        (
            "federation.min_cluster_size_of_all",
            ["federation.", "min_", "cluster_", "size_", "of_", "all"],
        ),
        ("ifca:weight=0.5", ["ifca:", "weight=0.5"]),
        ("bcfl-g@temperature=4", ["bcfl-g@", "temperature=4"]),
        ("bcfl-g-fedopt", ["bcfl-g-", "fedopt"]),
        ("A/bcfl-mht-10-fedopt", ["A/bcfl-mht-10-", "fedopt"]),
        ("ocfl-hdbscan", ["ocfl-hdbscan"]),
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
    key = re.findall(r'<th scope="row">(.)</th><td class="folder"><span>run</span></td>', page)
    assert key == ["A", "B"]
    assert page.count("<span>A/fedavg</span>") == 1
    assert "<span>A/" not in compare_page.render([make_run()])


def test_a_page_of_several_runs_says_in_what_they_differ(make_run):
    page = compare_page.render([make_run(), make_run(seeds=(0, 1, 2))])
    assert page.count("The runs differ in their seeds, so that their methods are not compared") == 1
    assert "The runs differ" not in compare_page.render([make_run(), make_run()])
    told = compare_page.different(["data", "partition", "seeds"])
    assert told.startswith("The runs differ in their data, partition and seeds, so that")


def test_a_page_of_several_runs_notes_once_what_is_no_error(make_run):
    runs = [make_run(num_floored=12), make_run(num_floored=34)]
    page = compare_page.render(runs)
    assert "Warnings" not in page.split("</nav>")[1].split("Results")[0]
    assert page.count("Curvature entries raised") == 1
    assert "12 (A/fedavg), 12 (A/bcfl-g), 34 (B/fedavg), 34 (B/bcfl-g)" in page


def test_a_page_of_several_runs_says_what_colours_and_dashes_are(make_run):
    runs = [make_run(), make_run()]
    assert "dashes tell the runs apart" in compare_page.render(runs)
    assert "dashes" not in compare_page.render(runs[:1])


def test_every_column_of_a_table_is_explained_and_sorted_by_what_is_better():
    columns = [*COLUMNS, *AGREEMENT_COLUMNS, *PRIVACY_COLUMNS, *OF_SOME]
    assert set(explained(column.title for column in columns)) == {c.title for c in columns}
    assert all(better(column.title) == column.better for column in columns)
    for table in (CALIBRATION, LABELS, DETECTION):
        titles = [title for title, *_ in table.values()]
        assert list(explained(titles)) == list(dict.fromkeys(titles))
        assert all(map(better, titles))


def test_the_predictions_of_an_uncertainty_page_are_explained():
    meaning = explained(["prediction"])["prediction"]
    assert [name for name in get_args(PredictiveName) if f"{name}" not in meaning] == []
    assert "tuned: " in meaning
    assert explained(["draws"])
