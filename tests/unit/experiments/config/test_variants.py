import pytest

from experiments.config.variants import (
    Grid,
    Variant,
    expanded,
    in_text,
    merged,
    value_of,
    values_of,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("joint", "joint"),
        ("none", "none"),
        ("[2, 9]", [2, 9]),
        ("['split', 'birth']", ["split", "birth"]),
    ],
)
def test_values_are_toml_or_text_and_read_back(text, value):
    assert value_of(text) == value
    assert value_of(in_text(value)) == value
    assert " " not in in_text(value)


def test_values_of_grids_are_lists_of_toml_or_of_text():
    assert values_of("0.01,0.1,1") == (0.01, 0.1, 1)
    assert values_of("joint, alternating") == ("joint", "alternating")
    assert values_of("[0,9],[2,3]") == ([0, 9], [2, 3])
    assert values_of("mean,1.0") == ("mean", 1.0)


def test_a_variant_reads_its_name_back():
    label = Variant("ifca").labelled({"num_clusters": 3, "objective.momentum": 0.5})
    assert label == "ifca@num_clusters=3@objective.momentum=0.5"
    assert Variant.of(label) == Variant("ifca", {"num_clusters": 3, "objective": {"momentum": 0.5}})
    assert Variant.of(label).labelled({}) == label
    assert Variant.of("ifca") == Variant("ifca")


def test_grids_are_products_that_leave_other_methods_alone():
    grids = [Grid("ifca", "num_clusters", (2, 3)), Grid("ifca", "solver", ("heap",))]
    assert expanded(["fedavg", "ifca"], grids) == (
        *("fedavg", "ifca@num_clusters=2@solver=heap", "ifca@num_clusters=3@solver=heap"),
    )


def test_later_options_count_more_and_training_number_by_number():
    first = {"num_clusters": 3, "objective": {"momentum": 0.5, "local_steps": 2}}
    second = {"num_clusters": 4, "objective": {"momentum": 0.1}}
    assert merged(first, second) == {
        "num_clusters": 4,
        "objective": {"momentum": 0.1, "local_steps": 2},
    }
    assert merged({}, {}) == {}
