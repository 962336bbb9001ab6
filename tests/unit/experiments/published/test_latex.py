"""LaTeX tables: what stands in them, and remarks as text that is set below."""

from experiments.published import reading
from experiments.published.comparison import compare
from experiments.published.formats import remarks
from experiments.published.latex import escaped, latex
from experiments.published.results import Results
from experiments.published.units import units_of


def below(text):
    return text.partition(r"\end{tabular}")[2].splitlines()


def test_marks_and_scale_and_missing_data_are_explained_below_the_table(miniature):
    results, table = Results(miniature), reading.load("tiny/1")
    for unit in units_of(table, "small", [0, 1], ["label"]):
        content = {"setting": unit.setting, "seconds": 1.0, "metrics": {"accuracy": 0.5}}
        results.write(unit, content)
    comparison = compare(table, "small", results, {"optdigits": ""}, [0, 1])
    text = latex(comparison, list(remarks(comparison)))
    assert r"Method & \multicolumn{2}{c}{Acc} & seeds \\" in text
    assert r"IFCA \& more & 83$^{a}$ & 50.00 $\pm$ 0.00 & 2 \\" in text
    lines = below(text)
    assert lines[2:5] == [
        r"\smallskip",
        r"\begin{minipage}{\linewidth}",
        r"\footnotesize\raggedright",
    ]
    assert lines[-1] == r"\end{minipage}"
    assert r"$^{a}$ Known to be wrong in print: it is a typing error\par" in lines
    assert r"Scale \texttt{small}: two rounds\par" in lines
    assert r"Data not here: tissuemnist (column \texttt{absent})\par" in lines
    assert not any(line.startswith("%") for line in lines)


def test_a_table_without_printed_values_has_ours_alone(miniature, content):
    table = reading.from_table("tiny/1", content | {"printed": {}, "broken": []})
    text = latex(compare(table, "small", Results(miniature), {"optdigits": ""}), [])
    assert "theirs" not in text
    assert r"\begin{tabular}{lrr}" in text
    assert text.endswith("\\end{tabular}\n")


def test_letters_that_are_commands_are_written_otherwise():
    assert escaped("50 % of a_b & {c}, – ±") == r"50 \% of a\_b \& \{c\}, -- $\pm$"
    assert escaped("~^\\") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}"
