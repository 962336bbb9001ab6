"""The page against the files it was made from, read back by an HTML parser."""

import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser

import pytest

from bcfl.analysis.rows import DamagedRunWarning
from experiments.reports.compare import aligned, columns_of, gather, latex
from experiments.reports.report import of_asked, stand_ins, write_report
from experiments.reports.round_history import has_alternatives
from experiments.runs.plan import FolderError
from experiments.runs.run_folder import NoRunError
from tests.unit.experiments.reports.conftest import statistic

pytestmark = pytest.mark.usefixtures("plain_figures")

COLUMNS = {"accuracy": 100, "macro_f1": 100, "ari": 1, "ami": 1, "nll": 1, "ece": 1}


class Page(HTMLParser):
    """All elements with their attributes, and all text by the elements around it."""

    VOID = ("meta", "br", "use", "wbr")

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self._open), data))

    def attributes(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def text(self, tag):
        return " ".join(data for open_tags, data in self.texts if tag in open_tags)


def written(folder):
    path = write_report(folder)
    assert path == folder / "report.html"
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def usual(make_run):
    """The page of two methods with two seeds."""
    return written(make_run())


def result_rows(text):
    """By method, what is in each cell of the table of results: mean, std, whether marked."""
    body = re.search(r'<table class="results sortable">.*?<tbody>(.*?)</tbody>', text, re.DOTALL)[1]
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
        method = re.sub("<[^>]*>", "", re.search(r'<th scope="row">(.*?)</th>', row)[1])
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        found[method] = []
        for cell in cells:
            deviation = re.search(r"<small>± (.*?)</small>", cell)
            mean = re.sub(r"<[^>]*>", "", re.sub(r"<small>.*?</small>", "", cell))
            shown = mean.replace("▲", "").strip()
            found[method].append((shown, deviation and deviation[1], "▲" in mean))
    return found


def test_numbers_of_the_table_are_those_of_the_summary(make_run):
    folder = make_run()
    rows = result_rows(written(folder))
    summary = json.loads((folder / "summary.json").read_text())["methods"]
    assert list(rows) == list(summary)
    for method, cells in rows.items():
        for (mean, deviation, _), (metric, factor) in zip(cells, COLUMNS.items(), strict=False):
            digits = len(mean.split(".")[1])
            assert float(mean) == round(summary[method][metric]["mean"] * factor, digits)
            assert float(deviation) == round(summary[method][metric]["std"] * factor, digits)
        costs = [mean for mean, _, _ in cells[len(COLUMNS) :]]
        assert costs == ["5.4", "144", "78", "7.5", "10.0", "4.0", "12.0", "6.0"]


def test_columns_of_which_no_method_has_a_value_are_left_out(make_run):
    folder = make_run()
    stored = json.loads((folder / "summary.json").read_text())
    methods = stored["methods"]
    del methods["fedavg"]["storage"], methods["fedavg"]["communication"]
    del methods["bcfl-g"]["communication"]
    (folder / "summary.json").write_text(json.dumps(stored))
    text = written(folder)
    assert ("largest round" in text, "sent down" in text) == (True, False)
    shown = {method: cells[9][0] for method, cells in result_rows(text).items()}
    assert shown == {"fedavg": "–", "bcfl-g": "10.0"}
    titles = [column.title for column in columns_of(methods)]
    assert ("peak ×" in titles, "down ×" in titles) == (True, False)


def with_values(folder, metric, of_methods):
    """The folder, with other values of a metric in its summary, one per seed of each method."""
    path = folder / "summary.json"
    stored = json.loads(path.read_text())
    for method, values in of_methods.items():
        stored["methods"][method][metric] = statistic(values)
    path.write_text(json.dumps(stored))
    return folder


def test_a_best_is_marked_where_paired_tests_over_seeds_tell(make_run):
    folder = make_run(seeds=range(6))
    higher, lower = [0.9 + s / 100 for s in range(6)], [0.8 + s / 90 for s in range(6)]
    mixed = [*lower[:3], *(value + 0.2 for value in lower[3:])]
    with_values(folder, "accuracy", {"fedavg": lower, "bcfl-g": higher})
    with_values(folder, "macro_f1", {"fedavg": mixed, "bcfl-g": higher})
    with_values(folder, "nll", {"fedavg": lower, "bcfl-g": higher})
    with_values(folder, "ece", {"fedavg": lower, "bcfl-g": lower})
    text = written(folder)
    marked = {method: [cell[2] for cell in row] for method, row in result_rows(text).items()}
    assert [marked["bcfl-g"][column] for column in (0, 1, 4, 5)] == [True, False, False, False]
    assert [marked["fedavg"][column] for column in (0, 1, 4, 5)] == [False, False, True, False]
    assert not any(mark for row in marked.values() for mark in row[6:])
    assert "tests over 6 seeds" in text


def test_too_few_seeds_mark_no_best_and_say_how_many_it_takes(usual):
    assert not any(marked for row in result_rows(usual).values() for _, _, marked in row)
    assert "needs at least 6 seeds" in usual


def test_page_is_complete_in_itself(usual):
    page = Page(usual)
    assert "http" not in written_text(page)
    for _, attributes in page.elements:
        assert not {"src", "srcset", "action", "onload", "onclick"} & set(attributes)
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|WebSocket", page.text("script"))
    assert not page.attributes("link")
    style = page.text("style")
    assert "@import" not in style
    assert "url(" not in style


def written_text(page):
    attributes = [value or "" for _, attrs in page.elements for value in attrs.values()]
    return " ".join([*attributes, *(data for _, data in page.texts)])


def test_a_page_says_once_that_clients_are_marked(usual):
    assert usual.count("is marked in all figures") == 1


def test_ids_are_unique_and_references_resolve(usual):
    text = usual
    page = Page(text)
    ids = Counter(attrs["id"] for _, attrs in page.elements if "id" in attrs)
    assert max(ids.values()) == 1
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    used += [
        (attrs["aria-labelledby"], "") for _, attrs in page.elements if "aria-labelledby" in attrs
    ]
    assert used
    assert {one or other for one, other in used} <= set(ids)


def test_page_is_accessible_to_screen_readers(usual):
    page = Page(usual)
    assert page.attributes("html")[0]["lang"] == "en"
    assert all(attrs.get("scope") in ("row", "col") for attrs in page.attributes("th"))
    pictures = page.attributes("svg")
    narrow = [one for one in pictures if one["aria-labelledby"].endswith("-narrow-title")]
    assert (len(pictures), len(narrow)) == (13, 6)
    assert all(attrs["role"] == "img" for attrs in pictures)
    assert len(page.attributes("figcaption")) == 7
    assert page.text("figcaption").count("Look ") == 7
    assert len(page.attributes("title")) == len(pictures) + 1


def test_header_describes_the_run_and_its_command(usual):
    page = Page(usual)
    header = page.text("header")
    assert "2 methods on optdigits, 12 clients in 3 true groups, 6 rounds, 2 seeds." in header
    assert "A <tiny> example" in header
    assert "bcfl run tiny --seeds 0,1" in header
    settings = page.text("table").replace(". ", ".")
    assert all(word in settings for word in ("federation.rounds", "torch", "2.13.0", "cores"))


@pytest.mark.figures
def test_same_folder_gives_the_same_bytes(make_run, tmp_path):
    folder = make_run()
    first = written(folder)
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    assert written(folder) == first
    assert written(copy) == first
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_one_method_with_one_seed_has_no_spread_and_no_best(make_run):
    text = written(make_run(methods=["bcfl-g"], seeds=[4]))
    cells = result_rows(text)["bcfl-g"]
    assert all(deviation is None and not marked for _, deviation, marked in cells)
    assert "1 method on optdigits" in text
    assert "seed 4" in text
    assert "band:" not in Page(text).text("figcaption")


def test_unknown_groups_leave_agreement_out(make_run):
    text = written(make_run(groups=0))
    cells = result_rows(text)["bcfl-g"]
    assert "–" not in [cell[0] for cell in cells[:4]], "no columns of ARI and AMI"
    page = Page(text)
    assert "adjusted Rand index" not in page.text("text")
    assert "True groups are unknown" in page.text("figcaption")
    assert "true group" not in page.text("svg")
    assert "true group" not in page.text("header")


@pytest.mark.figures
@pytest.mark.parametrize("kept", [True, False])
def test_missing_graphs_are_left_out(make_run, kept):
    folder = make_run()
    for path in folder.glob("*/*/graph.graphml"):
        if not (kept and "fedavg" in path.parts):
            path.unlink()
    text = written(folder)
    assert ("no graph in the folder" in text) == kept
    assert ("Association graph" in text) == kept


def test_an_unfinished_run_shows_its_curves(make_run):
    folder = make_run(methods=("fedavg", "bcfl-g", "ifca"))
    (folder / "summary.json").unlink()
    shutil.rmtree(folder / "ifca")
    with (folder / "bcfl-g" / "seed-1" / "metrics.jsonl").open("a") as file:
        file.write('{"round": 7, "accu')
    text = written(folder)
    assert "No results yet: fedavg, bcfl-g, ifca." in text
    assert "2 of 3 methods on optdigits" in text
    assert "6 rounds, 2 seeds" in text
    assert "Learning curves" in text
    assert '<table class="results' not in text


def test_a_header_tells_what_of_the_run_is_missing(make_run):
    folder = make_run()
    (folder / "summary.json").unlink()
    for method in ("fedavg", "bcfl-g"):
        shutil.rmtree(folder / method / "seed-1")
        path = folder / method / "seed-0" / "metrics.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    assert "2 methods on optdigits, 12 clients in 3 true groups, 4 of 6 rounds, 1 of 2 seeds" in (
        written(folder)
    )
    assert of_asked(1, 2, "method") == "1 of 2 methods"


def spoil(folder, *pairs):
    for pair in pairs:
        path = folder / pair / "metrics.jsonl"
        path.write_text(path.read_text().replace('"round": 1', '"round": 7', 1))


def test_a_method_that_is_left_out_is_told_once(make_run):
    folder = make_run()
    spoil(folder, "bcfl-g/seed-0", "bcfl-g/seed-1")
    with pytest.warns(DamagedRunWarning, match="left out"):
        text = written(folder)
    assert text.count("<li>Left out: ") == 2
    assert "No results yet" not in text


def test_methods_with_fewer_seeds_keep_their_row_and_say_so(make_run):
    folder = make_run(methods=("fedavg", "ifca", "wecfl"))
    spoil(folder, "ifca/seed-0")
    with pytest.warns(DamagedRunWarning, match="left out"):
        text = written(folder)
    rows = result_rows(text)
    assert list(rows) == ["fedavg2 seeds", "ifca1 seed", "wecfl2 seeds"]
    with pytest.warns(DamagedRunWarning, match="left out"):
        results = gather([folder])
    lines = aligned(results)
    names = [line.split("  ")[0] for line in lines[1:4]]
    assert names == ["fedavg (2 seeds)", "ifca (1 seed)", "wecfl (2 seeds)"]
    assert any(line.startswith("ifca (1 seed) &") for line in latex(results))


@pytest.mark.figures
def test_values_that_are_unknown_in_all_rounds_leave_their_picture_out(make_run):
    text = written(
        make_run(
            accuracy=None,
            ari=None,
            log_captured_mass=None,
            effective_hypotheses=1.0,
            cluster_sizes=[0, 0],
        )
    )
    page = Page(text)
    names = [attrs["aria-labelledby"] for attrs in page.attributes("svg")]
    assert [name for name in names if "-narrow-" not in name] == [
        *("graph-title", "pairs-title", "cost-title")
    ]
    assert "Learning curves" not in text


def test_failures_are_counted_and_shown_as_text(make_run):
    text = written(make_run(methods=["ifca"], failures=["client-1: NaN in <model>", "late"]))
    assert "client-1: NaN in &lt;model&gt;" in text
    row = re.search(r"&lt;model&gt;</td><td>(\d+)</td>", text)
    assert row[1] == "12", "six rounds with two seeds"


def test_unstable_fusion_is_a_warning(make_run):
    text = written(make_run(methods=["bcfl-g"], outside_hull=0.25, num_floored=1234))
    assert "25.00% (bcfl-g)" in text
    warned, noted = (
        re.search(rf"{start}.*?</ul>", text, re.DOTALL)[0]
        for start in ('<section class="care"', '<details class="notes"')
    )
    assert "25.00% (bcfl-g)" in warned
    assert "1,234 (bcfl-g)" in noted
    assert "1,234" not in warned


def test_a_prior_that_outweighs_all_data_is_a_warning(make_run):
    assert "no longer move" not in written(make_run(methods=["bcfl-g"], outweighed=0.25))
    text = written(make_run(methods=["bcfl-g"], outweighed=0.75))
    assert "75% (bcfl-g, most of them from round 1 on)" in text


def test_without_warnings_there_is_no_section(usual):
    assert "Warnings" not in usual


def damage(folder, name, text):
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("run.json", "{", "run.json is no JSON"),
        ("run.json", "[]", "must hold a JSON object, got a list"),
        ("summary.json", "nonsense", "summary.json isn't as it was written: Expecting"),
        ("bcfl-g/seed-0/graph.graphml", "<graphml", "is not a GraphML file"),
    ],
)
def test_a_damaged_file_is_named(make_run, name, text, told):
    folder = make_run()
    damage(folder, name, text)
    with pytest.raises(ValueError, match=re.escape(told)):
        write_report(folder)
    assert not (folder / "report.html").exists()


def test_a_folder_without_a_run_is_refused(tmp_path, make_run):
    with pytest.raises(FolderError, match="doesn't exist"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(FolderError, match=r"holds no run \(it has no run\.json\)"):
        write_report(tmp_path)
    folder = make_run(methods=["ifca"])
    shutil.rmtree(folder / "ifca")
    with pytest.raises(NoRunError, match="no method has done a round"):
        write_report(folder)


def test_agreement_over_all_rounds_has_a_table_of_its_own_where_it_is_known(make_run, usual):
    assert "mean over all rounds, so that" not in usual
    folder = make_run()
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    for number, scores in enumerate(summary["methods"].values()):
        for name in ("ari", "ami", "homogeneity", "completeness"):
            value = 0.5 + number / 8
            scores[f"mean_{name}"] = {"mean": value, "std": 0.0, "values": [value, value]}
    path.write_text(json.dumps(summary))
    text = written(folder)
    table = text[text.index("mean over all rounds, so that") :]
    rows = result_rows(table)
    assert rows["fedavg"] == [("0.500", "0.000", False)] * 4
    assert rows["bcfl-g"] == [("0.625", "0.000", False)] * 4


@pytest.mark.parametrize(
    ("weights", "several"), [([[1.0], [1.0]], False), ([[0.6, 0.4], [1.0]], True)]
)
def test_a_single_hypothesis_can_be_picked_where_there_were_several(weights, several):
    kept = [{"weights": row} for row in weights]
    known = {
        "rounds": [1, 2],
        "methods": {"fedavg": {"kept": [{"weights": [1.0]}]}, "b": {"kept": kept}},
    }
    assert has_alternatives(known) == several


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        (["fedavg", "wecfl"], ""),
        (["fedavg", "default"], "default stands for bcfl-race-4."),
        (["default-8"], "default-8 stands for bcfl-race-8."),
        (["default-finetune"], "default-finetune stands for bcfl-race-4-finetune."),
    ],
)
def test_the_page_says_what_the_default_method_is(methods, told):
    assert stand_ins(methods) == told
