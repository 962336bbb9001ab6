"""Recipes as functions and by name are the same, and refuse what they have no use for."""

import numpy as np
import pytest

from bcfl import Objective, methods
from bcfl.methods import UnknownOptionError, applicable, build

OBJECTIVE = Objective(local_steps=3, learning_rate=0.5)


@pytest.mark.parametrize(
    ("name", "options", "made"),
    [
        ("fedavg", {}, methods.fedavg()),
        ("fedprox", {"proximal": 0.1}, methods.fedprox(proximal=0.1)),
        ("faacl-h", {"epsilon": 0.2}, methods.faacl_hierarchical(epsilon=0.2)),
        ("bcfl-mht-3", {"near_copies": None}, methods.bcfl_mht(max_hypotheses=3, near_copies=None)),
        (
            "ifca-cam",
            {"num_clusters": 3, "update": "simultaneous", "objective": OBJECTIVE},
            methods.with_additive_model(
                methods.ifca(num_clusters=3, objective=OBJECTIVE), update="simultaneous"
            ),
        ),
        (
            "bcfl-g-con-rep-w",
            {"weight": 0.1, "warm_up_rounds": 3, "temperature": 2},
            methods.with_warm_up(
                methods.with_output_contrast(methods.bcfl_g(temperature=2.0), weight=0.1),
                warm_up_rounds=3,
            ),
        ),
        (
            "wecfl-cks-con-para-finetune",
            {"sharing": 0.3},
            methods.with_finetuning(
                methods.with_sharing(methods.with_contrast(methods.wecfl()), sharing=0.3)
            ),
        ),
        ("wecfl-con-cks", {}, methods.with_contrast_and_sharing(methods.wecfl())),
    ],
)
def test_a_function_and_a_name_make_the_same(name, options, made):
    by_name = build(name, **options)
    assert by_name.policy == made.policy
    assert (by_name.tracker, by_name.finetuned) == (made.tracker, made.finetuned)
    assert sorted(by_name.name.split("-")) == sorted(made.name.split("-"))


def test_the_number_of_a_name_may_be_said_again_but_not_otherwise():
    assert build("bcfl-mh-3", max_hypotheses=3) == build("bcfl-mh-3")
    assert build("bcfl-mh", max_hypotheses=3) == build("bcfl-mh-3")
    assert build("bcfl-c").name == "bcfl-c-3"
    assert methods.bcfl_mht(max_hypotheses=5).name == "bcfl-mht-5"
    message = "max_hypotheses must be 3, as the name 'bcfl-mh-3-w' has it, got 4"
    with pytest.raises(ValueError, match=message):
        build("bcfl-mh-3-w", max_hypotheses=4)


def test_an_option_that_a_method_has_no_use_for_is_refused_with_those_it_has():
    own = "belief_temperature, calibration, cluster_size, folds, num_clusters, objective, "
    has = f"It has: {own}score_samples, scored_by, solver"
    with pytest.raises(UnknownOptionError, match=f"method 'ifca' has no option 'proximal'. {has}"):
        methods.ifca(proximal=1.0)
    message = "'ifca-cam' has no option 'updat'. Did you mean 'update'.* pull, score_samples"
    with pytest.raises(UnknownOptionError, match=message):
        build("ifca-cam", updat="joint")
    with pytest.raises(UnknownOptionError, match="method '-cam' has no option 'weight'"):
        methods.with_additive_model(methods.ifca(), weight=0.1)


@pytest.mark.parametrize("name", ["default", "fedavg", "ifca+fedavg", "bcfl-mh-3-w"])
def test_options_of_local_training_are_told_where_they_belong(name):
    for option in ("learning_rate", "lr"):
        with pytest.raises(
            UnknownOptionError, match=r"objective=Objective\(learning_rate=\.\.\.\)"
        ):
            build(name, **{option: 0.1})


@pytest.mark.parametrize("objective", [{"learning_rate": 0.1}, 3, Objective])
@pytest.mark.parametrize("name", ["ifca", "bcfl-g", "faacl", "fedgroup"])
def test_an_objective_of_another_type_is_refused(name, objective):
    with pytest.raises(TypeError, match=r"objective must be a bcfl\.Objective, such as .*, got"):
        build(name, objective=objective)


def test_an_option_of_other_methods_can_be_left_out():
    message = r"'fedavg' has no option 'num_clusters'\. .*methods\.applicable\('fedavg', options\)"
    with pytest.raises(UnknownOptionError, match=message):
        build("fedavg", num_clusters=4)
    with pytest.raises(UnknownOptionError, match="has no option 'num_cluters'") as error:
        build("fedavg", num_cluters=4)
    assert "applicable" not in str(error.value)


def test_options_are_keywords():
    with pytest.raises(TypeError, match="options of ifca are given by keyword"):
        methods.ifca(4)
    with pytest.raises(TypeError, match="options of with_warm_up are given by keyword"):
        methods.with_warm_up(methods.ifca(), 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_clusters": True}, "num_clusters of ifca must be a whole number, got True"),
        ({"num_clusters": 3.0}, "num_clusters of ifca must be a whole number, got 3.0"),
        ({"score_samples": "all"}, "score_samples of ifca must be a whole number or none"),
        ({"solver": "hepa"}, "got 'hepa'. Did you mean 'heap'"),
        ({"cluster_size": (1, 2, 3)}, "cluster_size of ifca must be a list of a whole number, a"),
        ({"cluster_size": 3}, "cluster_size of ifca must be a list of"),
        ({"calibration": 1.0}, r"calibration must lie in \[0, 1\), got 1.0"),
        ({"num_clusters": 0}, "num_clusters must be a whole number of at least 1, got 0"),
    ],
)
def test_values_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        build("ifca", **options)


@pytest.mark.parametrize("name", ["default", "ifca"])
def test_a_text_that_another_method_takes_names_that_method(name):
    message = r"num_clusters of \w+ must be a whole number, got 'auto'; bcfl-mht-8 takes 'auto'"
    with pytest.raises(ValueError, match=message):
        build(name, num_clusters="auto")


def test_numbers_of_numpy_and_words_of_files_serve():
    made = build("ifca", num_clusters=np.int64(3), score_samples="none", cluster_size=[1, "none"])
    assert made == build("ifca", num_clusters=3, score_samples=None, cluster_size=(1, None))
    assert build("bcfl-g", temperature=2).policy.temperature == 2.0


def test_samples_that_are_set_aside_are_those_of_the_larger_share():
    assert build("fedavg", calibration=0.1).validation == 0.1
    assert build("faacl", calibration=0.1).validation == 0.25
    assert build("faacl", calibration=0.4, validation=0.3).validation == 0.4
    assert build("bcfl-g").validation == 0
    assert build("bcfl-g", validation=0.3).validation == 0.3
    assert build("bcfl-g", temperature="auto").validation == 0.25
    with pytest.raises(ValueError, match=r"validation must be above 0, got 0\.0"):
        build("bcfl-g", judge="held_out", validation=0)


def test_options_that_hold_for_several_methods_go_to_those_that_have_them():
    shared = {"num_clusters": 3, "epsilon": 0.2, "update": "joint", "objective": OBJECTIVE}
    assert applicable("fedavg", shared) == {"objective": OBJECTIVE}
    assert applicable("faacl", shared) == {"epsilon": 0.2, "objective": OBJECTIVE}
    assert applicable("ifca-cam", shared).keys() == {"num_clusters", "update", "objective"}


def test_finetuning_trains_as_the_method_does_without_its_regularizers():
    method = build("fedprox-finetune", objective=OBJECTIVE, finetuning_steps=7)
    assert method.finetuned == Objective(local_steps=7, learning_rate=0.5)
