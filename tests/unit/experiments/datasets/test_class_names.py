"""Names of classes of data sets of torch and Hugging Face."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from experiments import datasets
from experiments.datasets import DataError, DataWarning
from tests.unit.experiments.datasets.small_sources import Pictures, Rows


def named(names, labels):
    rows = Rows({"x": np.eye(len(labels)), "label": labels})
    rows.features = {"label": SimpleNamespace(names=names)}
    return rows


class Named(Pictures):
    def __init__(self, count, classes):
        super().__init__(count)
        self.classes = classes


def pairs(labels, names):
    samples = TensorDataset(torch.eye(len(labels)), torch.tensor(labels))
    samples.classes = names
    return samples


def test_names_of_classes_are_those_of_the_column():
    found = datasets.from_huggingface(named(["cat", "dog", "fox"], [0, 2]))
    assert (found.class_names, found.num_classes) == (("cat", "dog", "fox"), 3)
    message = r"but class 0 is 'cat' in training and 'dog' in test; number the labels"
    with pytest.raises(DataError, match=message):
        datasets.from_huggingface(named(["cat", "dog"], [0, 1]), named(["dog", "cat"], [0, 1]))


def test_names_of_classes_are_those_of_the_data_set():
    found = datasets.from_torch(Named(4, ["cat", "dog"]), Pictures(2))
    assert found.class_names == ("cat", "dog")
    with pytest.raises(DataError, match=r"'cat' in training and 'dog' in test; .* of names$"):
        datasets.from_torch(Named(4, ["cat", "dog"]), Named(2, ["dog", "fox"]))


def test_the_last_classes_may_be_absent_from_a_test_set():
    found = datasets.from_torch(Named(4, ["cat", "dog"]), Named(1, ["cat"]))
    assert (found.class_names, found.targets.tolist()) == (("cat", "dog"), [0, 1, 0, 1, 0])


@pytest.mark.parametrize("swapped", [False, True])
def test_names_of_one_part_may_go_on_in_another(swapped):
    few, many = ["cat", "dog"], ["cat", "dog", "fox"]
    names = (many, few) if swapped else (few, many)
    parts = [named(one, [0, 1, 0]) for one in names]
    found = datasets.from_huggingface(*parts)
    assert (found.class_names, found.num_classes) == (tuple(many), 3)
    with pytest.warns(DataWarning, match=r"no sample is of fox among the 3 `classes`"):
        found = datasets.from_torch(*(Named(4, one) for one in names))
    assert (found.class_names, found.num_classes) == (tuple(many), 3)


@pytest.mark.parametrize("labels", [[0, 1], [0, 2]])
def test_classes_without_samples_are_told(labels):
    data = pairs(labels, ["cat", "dog", "fox"])
    with pytest.warns(DataWarning, match=r"if its labels are numbers of other .*Subset") as told:
        found = datasets.from_torch(data)
    assert (found.class_names, found.targets.tolist()) == (("cat", "dog", "fox"), labels)
    assert [one.filename for one in told] == [__file__]


def test_names_of_other_classes_are_left_out():
    subset = torch.utils.data.Subset(pairs([0, 1], ["cat", "dog", "fox"]), range(2))
    assert datasets.from_torch(subset).class_names is None
    turned = pairs([0, 1], ["dog", "cat"])
    turned.target_transform = int
    assert datasets.from_torch(turned).class_names is None
    message = r"1 name of classes left out, as there are labels up to 1; dataclasses\.replace"
    for found, data in (("torch", pairs([0, 1], ["cat"])), ("huggingface", named(["cat"], [0, 1]))):
        with pytest.warns(DataWarning, match=message):
            assert getattr(datasets, f"from_{found}")(data).num_classes == 2


def test_names_may_be_those_of_the_columns_of_rows():
    found = datasets.from_torch(pairs([[0, 1], [1, 1]], ["old", "new"]))
    assert (found.class_names, found.label_sets.shape) == (("old", "new"), (2, 2))
    with pytest.warns(DataWarning, match=r"3 names .*, as there are rows of 2 labels"):
        assert datasets.from_torch(pairs([[0, 1], [1, 1]], [*"abc"])).class_names is None
