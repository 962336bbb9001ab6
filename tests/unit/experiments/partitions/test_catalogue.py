"""Partitions by name: invalid options and arguments."""

import pytest

from experiments import partitions


@pytest.mark.parametrize("name", [name for name in partitions.PARTITIONS if name != "writers"])
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"clients": 0}, "clients must be a whole number of at least 1, got 0"),
        ({"clients": 2.5}, "clients must be a whole number"),
        ({"clients": 300}, "clients=300 with min_samples=8 require 2400 samples, .* has 1797"),
        ({"min_samples": 0}, "min_samples"),
        ({"min_samples": "few"}, "min_samples"),
        ({"test_fraction": 1.0}, "test_fraction must be at least 0 and below 1"),
        ({"test_fraction": "half"}, "test_fraction"),
        ({"test_fraction": float("nan")}, "test_fraction"),
        ({"samples_per_client": 5}, "samples_per_client must be at least min_samples=8, got 5"),
        ({"seed": 0.5}, "seed must be a whole number, got 0.5"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"clients": True}, "clients must be a whole number, got True"),
        ({"native_test": "yes"}, "native_test must be true or false, got 'yes'"),
        ({"client": 4}, "has no option 'client'. Did you mean 'clients'"),
        ({"dataset": "optdigits"}, "has no option 'dataset'"),
    ],
)
def test_options_out_of_range(digits, name, config, message):
    with pytest.raises(ValueError, match=message):
        partitions.build(name, digits, config)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("two-stage-dirichlet", {"groups": 41}, "groups must be at most clients=40, got 41"),
        ("two-stage-dirichlet", {"groups": 0}, "groups must be a whole number"),
        (
            "two-stage-dirichlet",
            {"alpha": 0.1},
            "alpha must be a list of 2, each of it a number",
        ),
        ("two-stage-dirichlet", {"alpha": [0.1, 0]}, r"alpha\[1\] must be a number, 0.001 to 1e"),
        ("two-stage-dirichlet", {"alpha": [0.1, float("nan")]}, "alpha"),
        ("two-stage-dirichlet", {"groups": 20, "alpha": [0.001, 1]}, "none of 1000 draws"),
        ("two-stage-dirichlet", {"group_sizes": 4}, "group_sizes must be a list, .* or none"),
        ("noisy", {"noise": 0.5}, "noise must be a list of 2, each of it a number or none"),
        ("merged-classes", {"small_share": "few"}, "small_share must be a number, got 'few'"),
        ("stream", {"concept": True}, "concept must be text, got True"),
        ("dirichlet", {"alpha": -1}, "alpha must be a number"),
        ("dirichlet", {"alpha": "low"}, "alpha must be a number"),
        ("n-class", {"classes_per_client": 11}, "classes_per_client .* 1 to 10, got 11"),
        ("n-class", {"classes_per_client": 1.5}, "classes_per_client"),
        (
            "cluster-n-class",
            {"classes": 3},
            "classes must be a list of 2, each of it a whole",
        ),
        ("cluster-n-class", {"classes": [3, 4]}, r"classes\[1\] must be .* 1 to 3, got 4"),
        ("cluster-n-class", {"classes": [10, 2]}, "there are 1 sets of 10"),
    ],
)
def test_arguments_out_of_range(digits, name, config, message):
    with pytest.raises(ValueError, match=message):
        partitions.build(name, digits, config)


def test_an_unknown_partition_suggests_the_nearest(digits):
    with pytest.raises(ValueError, match=r"unknown partition 'rotate'\. Did you mean 'rotated'\?"):
        partitions.build("rotate", digits, {})
