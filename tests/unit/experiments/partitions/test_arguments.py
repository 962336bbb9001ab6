"""Partitions that are called directly check the same as those of a scenario."""

import inspect

import numpy as np
import pytest

from experiments import datasets, partitions

EACH = pytest.mark.parametrize("divide", partitions.PARTITIONS.values(), ids=partitions.PARTITIONS)


@EACH
def test_an_unknown_option_is_named_with_the_nearest(digits, divide):
    with pytest.raises(ValueError, match=r"has no option 'client'\. Did you mean 'clients'\?"):
        divide(digits, client=4)


@EACH
@pytest.mark.parametrize(
    ("dataset", "told"),
    [
        (np.zeros((3, 3)), r"a ndarray"),
        ("optdigits", r"'optdigits'; datasets\.load\('optdigits'\) reads it"),
        (datasets.load, r"the function load; call it: load\(name\)"),
    ],
    ids=["array", "name", "function"],
)
def test_what_is_no_data_set_is_refused(divide, dataset, told):
    with pytest.raises(TypeError, match=rf"dataset must be a Dataset, .*, got {told}"):
        divide(dataset)


@EACH
def test_a_value_of_another_type_is_an_error_about_its_option(digits, divide):
    options = [name for name in inspect.signature(divide).parameters if name != "dataset"]
    for name in options[:-1]:
        with pytest.raises(ValueError, match=name):
            divide(digits, **{name: 2.5 + 1j})


def test_positional_and_keyword_options_are_the_same(digits):
    one, other = (
        partitions.rotated(digits, 2, 8),
        partitions.rotated(dataset=digits, groups=2, clients=8),
    )
    assert [data.num_samples for data in one] == [data.num_samples for data in other]
    with pytest.raises(TypeError, match="multiple values for argument 'groups'"):
        partitions.rotated(digits, 2, groups=2)
