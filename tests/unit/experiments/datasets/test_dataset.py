"""Arrays and attributes of data sets are validated."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from experiments.datasets import DataError, Dataset

INPUTS = np.linspace(0, 1, 12).reshape(6, 2)

LABELS = np.array([0, 1, 2, 0, 1, 2])


def with_nan():
    inputs = INPUTS.copy()
    inputs[3, 1] = np.nan
    return inputs


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (with_nan(), LABELS, "inputs must be finite, .* the first of them nan in sample"),
        (np.full((6, 2), np.inf), LABELS, "finite"),
        (INPUTS.astype(str), LABELS, "real numbers"),
        (INPUTS * 1j, LABELS, "real numbers"),
        (
            INPUTS,
            np.where(LABELS, LABELS, np.nan),
            "labels must be finite, .* 2 of 6 samples, .* nan",
        ),
        (INPUTS, [*"abcab", None], "labels must not be missing, .* 1 of 6 .* None in sample 5"),
        (
            INPUTS,
            pd.array([0, 1, 2, 0, 1, None]),
            r"labels must .* 1 of 6 samples, .* in sample 5",
        ),
        (
            [[0, None]] * 6,
            LABELS,
            r"inputs must not be missing, .* in sample 0 \(from 0\) at \[1\]",
        ),
        (["good day"] * 6, LABELS, r"inputs must be real numbers, got text .*columns of 0 and 1"),
        (pd.Series([[0, 1]] * 6), LABELS, r"got objects .*rows .* `numpy\.stack\(list"),
        (INPUTS[:, :0], LABELS, r"at least one number in each sample, got \(6, 0\)"),
        (INPUTS, LABELS.astype("u8") + 2**63, r"labels must be below 2\*\*63"),
        (INPUTS, LABELS.astype(str), r"got type <U\d+; give `numpy\.asarray\(y, float\)"),
        (INPUTS, np.full(6, "cat"), r"got type <U3; number the labels .*return_inverse=True"),
        (INPUTS, LABELS + 0.5, r"got type float64; numbers to predict .* in Python"),
        (
            INPUTS,
            LABELS + 1,
            r"got 3 distinct ones: 1, 2, 3; .* from 0: .*`numpy\.asarray\(y\) - 1`",
        ),
        (
            INPUTS,
            LABELS - 1,
            r"leave out samples of -1 if .* no label, .*; if it is a class, number",
        ),
        (INPUTS, LABELS * 1000, r"integers 0 to k - 1.*; number the labels"),
        (INPUTS, LABELS[:, None, None], r"targets \(samples,\)"),
        (INPUTS, LABELS[:, None] / 2, r"integers 0 to k - 1, got type float64"),
        (INPUTS, LABELS[:5], "same length"),
        (
            INPUTS[:, 0],
            LABELS,
            r"\(training part\): inputs must .* axis of .*reshape\(-1, 1\)`$",
        ),
        (LABELS, INPUTS, r"got \(6,\); .* swapped with the labels, of shape \(6, 2\)\?"),
        (INPUTS[:0], LABELS[:0], "at least one sample"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(inputs, labels, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays("bad", (inputs, labels))


def test_parts_must_agree_in_shape():
    with pytest.raises(DataError, match=r"agree in shape, got \(2,\) and \(1,\)"):
        Dataset.from_arrays("bad", (INPUTS, LABELS), (INPUTS[:, :1], LABELS))


def test_data_frames_are_read_column_by_column():
    frame = pd.DataFrame({"dose": INPUTS[:, 0], "smoker": LABELS > 0})
    found = Dataset.from_arrays("frame", (frame, LABELS))
    np.testing.assert_array_equal(found.inputs[:, 1], LABELS > 0)
    narrow = frame.astype({"dose": "Float32", "smoker": "Int64"})
    np.testing.assert_array_equal(
        Dataset.from_arrays("frame", (narrow, LABELS)).inputs, found.inputs
    )
    with pytest.raises(
        DataError, match=r"'frame' \(training part\): column 'smoker' .* real numbers"
    ):
        Dataset.from_arrays("frame", (frame.astype({"smoker": str}), LABELS))


def test_columns_of_test_frames_are_in_the_order_of_training():
    frame = pd.DataFrame({"a": INPUTS[:, 0], "b": INPUTS[:, 1]})
    labels = pd.DataFrame({"x": LABELS > 0, "y": LABELS > 1})
    test = frame[["b", "a"]], labels[["y", "x"]]
    found = Dataset.from_arrays("frame", (frame, labels), test)
    np.testing.assert_array_equal(found.inputs[6:], found.inputs[:6])
    np.testing.assert_array_equal(found.targets[6:], found.targets[:6])
    for others in ((frame.rename(columns={"a": "c"}), labels), (frame, labels[["y"]].assign(z=0))):
        with pytest.raises(
            DataError, match=r"\(test part\): .* columns of the training .*, got \["
        ):
            Dataset.from_arrays("frame", (frame, labels), others)
    numbered = Dataset.from_arrays("frame", (frame, labels), (frame.to_numpy(), labels))
    np.testing.assert_array_equal(numbered.inputs, found.inputs)


def test_a_class_may_have_no_sample_where_the_number_of_classes_is_given():
    sparse = Dataset(
        name="sparse",
        inputs=INPUTS.astype(np.float32),
        targets=LABELS.astype(np.int64),
        num_classes=5,
    )
    assert sparse.num_classes == 5
    with pytest.raises(DataError, match="targets must be 0 to 1"):
        Dataset(
            name="few",
            inputs=INPUTS.astype(np.float32),
            targets=LABELS.astype(np.int64),
            num_classes=2,
        )
    with pytest.raises(DataError, match="float32"):
        Dataset(name="wide", inputs=INPUTS, targets=LABELS, num_classes=3)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(np.zeros((2, 2)), mask=[[1, 0], [0, 0]])
    with pytest.raises(DataError, match="must not be masked"):
        Dataset.from_arrays("masked", (masked, np.array([0, 1])))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_classes": "3"}, "num_classes must be a whole number, at least 1, got '3'"),
        ({"num_classes": 0}, "num_classes must be a whole number, at least 1, got 0"),
        ({"writers": LABELS / 2}, r"writers must be one whole number .*, got float64"),
        ({"writers": [0, 1]}, r"writers must be one for each of the 6 samples, got 2"),
        (
            {"domains": LABELS / 2, "domain_names": ("a",)},
            "domains must be one whole .*, got float64",
        ),
        ({"inputs": [[1.0]]}, "inputs must be an array of float32, got a list"),
        ({"targets": torch.tensor(LABELS)}, "targets must be an array of int64, got torch.int64"),
        ({"class_names": ("a", "b")}, "class_names must be one name .* 3 classes .*, got 2"),
        ({"class_names": 3}, "class_names must be names as text, got 3"),
        ({"domain_names": "ab"}, "domain_names must be names as text, got 'ab'"),
        ({"domains": [0, 1]}, r"domains must be one for each of the 6 samples, got 2"),
        ({"writers": LABELS, "writer_names": [*"xyx"]}, r"writer_names must be distinct, got"),
        ({"writers": [LABELS]}, r"writers must be one .*, got int64 of shape \(1, 6\)$"),
        ({"domain_names": None}, "domain_names must be names as text, got None"),
        ({"num_native_test": "2"}, "num_native_test must be 0 to 6, got '2'"),
        ({"num_native_test": 2.5}, r"num_native_test must be 0 to 6, got 2\.5"),
        ({"class_names": "abc"}, "class_names must be names as text, got 'abc'"),
        ({"targets": LABELS - 1}, "targets must be 0 to 2, got -1 to 1; leave out samples of -1"),
        ({"label_sets": np.eye(3)}, "label_sets must be bool, .*, got float64"),
        ({"label_sets": np.ones((2, 4), bool)}, r"here 3 rows, got bool of shape \(2, 4\)"),
    ],
)
def test_a_data_set_of_other_attributes_is_refused(changes, message):
    arrays = {"inputs": INPUTS.astype(np.float32), "targets": LABELS.astype(np.int64)}
    with pytest.raises(DataError, match=message):
        Dataset(**{"name": "odd", "num_classes": 3} | arrays | changes)
    with pytest.raises(DataError, match="num_classes must be a whole number, at least 1, got 0"):
        Dataset.from_arrays("odd", (INPUTS, LABELS), num_classes=0)


def test_whole_numbers_of_any_kind_are_writers_domains_and_sets_of_labels():
    arrays = {"inputs": INPUTS.astype(np.float32), "targets": LABELS.astype(np.int64)}
    found = Dataset(
        name="lists",
        num_classes=3,
        writers=[3, 1, 1, 0, 0, 3],
        domains=LABELS.astype(np.int32),
        domain_names=["a", "b", "c"],
        label_sets=[[0, 1], [1, 0], [1, 1]],
        class_names=["cat", "dog"],
        **arrays,
    )
    assert (found.writers.dtype, found.domains.dtype, found.label_sets.dtype) == ("i8", "i8", "?")
    assert (found.domain_names, found.class_names) == (("a", "b", "c"), ("cat", "dog"))


@pytest.fixture
def own():
    return Dataset.from_arrays("own", (INPUTS, LABELS))


@pytest.mark.parametrize("kind", ["writer", "domain"])
@pytest.mark.parametrize("names", [[*"zxyxyz"], np.array([*"zxyxyz"]), np.array([*"zxyxyz"], "S1")])
def test_names_of_writers_and_domains_are_kept(own, kind, names):
    found = replace(own, **{f"{kind}s": names})
    assert getattr(found, f"{kind}_names") == ("x", "y", "z")
    assert getattr(found, f"{kind}s").tolist() == [2, 0, 1, 0, 1, 2]
    given = replace(own, **{f"{kind}s": names, f"{kind}_names": [*"zyxw"]})
    assert getattr(given, f"{kind}s").tolist() == [0, 2, 1, 2, 1, 0], "in the order that is given"
    assert getattr(replace(found, **{f"{kind}s": None}), f"{kind}_names") == ()


@pytest.mark.parametrize("kind", ["writer", "domain"])
@pytest.mark.parametrize("others", [[*"abcabc"], [*"zxyxyw"], [0, 1, 2, 3, 0, 0], [-1] * 6])
def test_names_that_are_not_those_of_others_can_be_left_out(own, kind, others):
    named = replace(own, **{f"{kind}s": [*"zxyxyz"]})
    message = rf"must be of the 3 {kind}_names 'x', 'y', 'z', .*; {kind}_names=\(\) leaves these"
    with pytest.raises(DataError, match=message):
        replace(named, **{f"{kind}s": others})
    mended = {f"{kind}s": others, f"{kind}_names": ()}
    if kind == "domain" and not isinstance(others[0], str):
        with pytest.raises(DataError, match=r"must have domain_names, .*; domains=\[\*map\(str"):
            replace(named, **mended)
        mended["domains"] = [*map(str, others)]
    found = getattr(replace(named, **mended), f"{kind}s").tolist()
    assert len(set(found)) == len(set(others))


@pytest.mark.parametrize(
    "inputs",
    [
        [np.ma.array([0.1, 0.9], mask=[0, 1]), [0.1, 0.2]],
        [[0.1, 0.2], [0.3, np.ma.masked]],
        ([np.array([0.1, 0.2]), np.ma.array([0.1, 0.2], mask=True)]),
    ],
)
def test_masked_values_in_a_list_are_refused(inputs):
    with pytest.raises(
        DataError, match=r"must not be masked, .* 1 of 2 samples, .* in sample [01]"
    ):
        Dataset.from_arrays("masked", (inputs, [0, 1]))


def test_arrays_that_cannot_be_read_are_told():
    class Lost:
        def __array__(self, *arguments, **options):
            raise OSError("disk")

    with pytest.raises(DataError, match=r"inputs cannot be read, OSError: disk") as raised:
        Dataset.from_arrays("lost", (Lost(), LABELS))
    assert isinstance(raised.value.__cause__, OSError)
