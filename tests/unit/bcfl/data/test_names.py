"""Names of views: a slip would leave samples out without a word."""

import pytest
import torch

from bcfl.data import ClientData, View

VIEW = View(torch.ones(2, 3), torch.zeros(2))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tset", "test"),
        ("tests", "test"),
        ("TEST", "test"),
        ("train_1", "train"),
        ("training", "train"),
        ("val", "validation"),
        ("valid", "validation"),
        ("tset:2", "test:2"),
    ],
)
def test_a_name_that_is_nearly_another_is_refused(name, meant):
    words = rf"client 'a' has a view '{name}'. Did you mean '{meant}'\?"
    with pytest.raises(ValueError, match=words):
        ClientData("a", {"train": VIEW, name: VIEW})


@pytest.mark.parametrize("name", ["train:01", "train:0", "train:x", "train:", "train:-1", ":1"])
def test_time_steps_are_whole_numbers_from_one(name):
    with pytest.raises(ValueError, match=r"must be like 'train', or like 'train:2' .*, got"):
        ClientData("a", {"train": VIEW, name: VIEW})


@pytest.mark.parametrize(
    "name", ["test", "validation:3", "memory:0", "validation-memory:0", "calibration", "shifted:1"]
)
def test_further_views_have_any_other_name(name):
    assert ClientData("a", {"train": VIEW, name: VIEW}).num_samples == {"train": 2, name: 2}


def test_names_are_text():
    with pytest.raises(TypeError, match=r"names of views must be text, got 1"):
        ClientData("a", {"train": VIEW, 1: VIEW})
