"""Arrays as data sets: validation, scaling, channels."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from experiments import datasets
from experiments.datasets import DataError, Dataset, DataWarning

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


@pytest.mark.parametrize("of_test", [LABELS, LABELS[:, None]])
def test_one_column_of_labels_is_a_class_for_each_sample(of_test):
    train = INPUTS, LABELS.astype(np.uint8)[:, None]
    dataset = Dataset.from_arrays("column", train, (INPUTS, of_test))
    assert dataset.targets.tolist() == [*LABELS, *LABELS]
    assert (dataset.label_sets, dataset.num_native_test) == (None, 6)


def test_parts_must_agree_in_shape():
    with pytest.raises(DataError, match=r"agree in shape, got \(2,\) and \(1,\)"):
        Dataset.from_arrays("bad", (INPUTS, LABELS), (INPUTS[:, :1], LABELS))


@pytest.mark.parametrize(
    ("kinds", "highest"), [(("f4", "f8"), 1), (("u1", "i8"), 255), (("?", "f4"), 1)]
)
def test_parts_may_differ_in_type(kinds, highest):
    first, second = ((INPUTS.round() * highest).astype(kind)[:, None] for kind in kinds)
    found = Dataset.from_arrays("both", (first, LABELS), (second, LABELS))
    np.testing.assert_array_equal(found.inputs[:6, 0, 0], INPUTS.round())
    np.testing.assert_array_equal(found.inputs[6:], found.inputs[:6])


@pytest.mark.parametrize(
    ("train", "test"),
    [
        (("u1", 255), ("f8", 1)),
        (("f4", 1), ("i8", 255)),
        (("u1", 255), ("u2", 65535)),
        (("f8", 255), ("f8", 1)),
    ],
)
def test_parts_of_different_scales_are_refused_unless_it_is_said_how_they_are_read(train, test):
    first, second = ((INPUTS.round() * high).astype(kind)[:, None] for kind, high in (train, test))
    parts = (first, LABELS), (second, LABELS)
    message = (
        rf"one scale, got training \w+ up to {train[1]}, test \w+ up to {test[1]}; .* highest="
    )
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays("both", *parts)
    assert Dataset.from_arrays("both", *parts, scaled=False).inputs[6:].max() == test[1]
    assert Dataset.from_arrays("both", *parts, highest=65535).inputs[:6].max() == train[1] / 65535


def test_dark_parts_and_parts_without_a_scale_of_their_own_are_read_together():
    dark = np.zeros((6, 2, 2), np.uint8)
    whole = dark.copy()
    whole[0, 0, 0] = 255
    for kind in ("u1", "i8", "f4"):
        found = Dataset.from_arrays("dark", (whole, LABELS), (dark.astype(kind), LABELS))
        assert (found.inputs.max(), found.inputs[6:].max()) == (1, 0)


def test_a_test_part_without_labels_is_told():
    with pytest.raises(DataError, match=r"\(test part\): all labels are -1, .*published without"):
        Dataset.from_arrays("hidden", (INPUTS, LABELS), (INPUTS, np.full(6, -1)))


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


@pytest.mark.parametrize("kind", [int, float, bool])
def test_one_hot_rows_are_classes_where_each_row_of_all_parts_is_one(kind):
    rows = np.eye(4)[LABELS].astype(kind)
    found = Dataset.from_arrays("rows", (INPUTS, rows), (INPUTS, rows[::-1]))
    assert (found.label_sets, found.num_classes) == (None, 4)
    assert found.targets.tolist() == [*LABELS, *LABELS[::-1]]
    several = rows.copy()
    several[5, 0] = 1
    found = Dataset.from_arrays("rows", (INPUTS, rows), (INPUTS, several))
    np.testing.assert_array_equal(found.labelled(found.targets), np.concatenate([rows, several]))


@pytest.mark.parametrize("labels", [LABELS.astype(float), LABELS > 0, (LABELS > 0)[:, None]])
def test_whole_labels_of_any_type_are_classes(labels):
    found = Dataset.from_arrays("whole", (INPUTS, labels))
    assert found.targets.tolist() == labels.astype(int).ravel().tolist()


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


@pytest.mark.parametrize(
    ("raw", "scaled"),
    [
        (np.array([[0], [51], [255]], dtype=np.uint8), [0, 0.2, 1]),
        (np.array([[0], [3], [15]], dtype=np.uint8), [0, 0.2, 1]),
        (np.array([[0.25], [0.5], [0.75]]), [0.25, 0.5, 0.75]),
        (np.array([[0.0], [4.0], [16.0]]), [0, 0.25, 1]),
        (np.array([[0.0], [0.5], [255.0]]), [0, 0.5 / 255, 1]),
        (np.array([[[0]], [[13107]], [[65535]]], dtype=np.uint16), [[[0]], [[0.2]], [[1]]]),
        (np.array([[0], [1], [1]]), [0, 1, 1]),
        (np.array([[False], [True], [True]]), [0, 1, 1]),
        (np.array([[-1e-7], [0.5], [1 + 1e-7]]), [0, 0.5, 1]),
        (np.array([[[0]], [[51]], [[254]]], dtype=np.uint8), [[[0]], [[0.2]], [[254 / 255]]]),
    ],
)
def test_inputs_are_scaled_to_the_unit_interval(raw, scaled):
    dataset = Dataset.from_arrays("raw", (raw, np.array([0, 1, 2])))
    np.testing.assert_allclose(dataset.inputs[:, 0], scaled, rtol=1e-6)


@pytest.mark.parametrize(
    ("raw", "scaled", "message"),
    [
        (np.array([[0], [3], [128]], dtype=np.uint8), [0, 3 / 255, 128 / 255], "end at 128 and"),
        (np.array([[0], [9], [90]], dtype=np.uint8), [0, 0.1, 1], "end at 90 and .* their range"),
        (
            np.array([[[0]], [[9]], [[90]]], "u2"),
            [[[0]], [[0.1]], [[1]]],
            "16-bit inputs end at 9",
        ),
        (np.array([[0], [9], [90]], "u2"), [0, 0.1, 1], "whole numbers from 0 to 90 .* of words"),
        (np.array([[-1.0], [0.0], [3.0]]), [0, 0.25, 1], "inputs from -1 to 3 .* standardised"),
        (np.array([[0.0], [0.5], [2.0]]), [0, 0.25, 1], "inputs from 0 to 2"),
        (np.array([[7.0], [7.0], [7.0]]), [0, 0, 0], "inputs from 7 to 7"),
        (np.array([[1], [2], [9]]), [0, 1 / 8, 1], "whole numbers from 1 to 9 .* of words"),
        (np.array([[0], [4], [16]]), [0, 0.25, 1], "whole numbers from 0 to 16 .* scaled=False"),
    ],
)
def test_a_guess_of_the_scale_is_told_with_what_to_pass(raw, scaled, message):
    with pytest.warns(UserWarning, match=message):
        dataset = Dataset.from_arrays("raw", (raw, np.array([0, 1, 2])))
    np.testing.assert_allclose(dataset.inputs[:, 0], scaled, rtol=1e-6)
    kept = Dataset.from_arrays("raw", (raw, np.array([0, 1, 2])), scaled=False)
    np.testing.assert_array_equal(kept.inputs.reshape(raw.shape), raw.astype(np.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"highest": "255"}, "highest must be a number above 0, got '255'"),
        ({"highest": 0}, "highest must be a number above 0, got 0"),
        ({"highest": 1e-50}, "highest must be a number above 0, got 1e-50"),
        ({"highest": np.inf}, "highest must be a number above 0, got inf"),
        ({"scaled": "no"}, "scaled must be True or False, got 'no'"),
    ],
)
def test_keywords_of_another_type_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays("raw", (INPUTS, LABELS), **options)


def test_inputs_are_either_kept_or_divided_and_told_to_be_rounded():
    raw, labels = np.array([[0], [2**24 + 1]]), np.array([0, 1])
    with pytest.raises(DataError, match=r"dataset 'raw': highest must not .* scaled=False, got 9"):
        Dataset.from_arrays("raw", (raw, labels), highest=9, scaled=False)
    with pytest.raises(DataError, match=r"as float32, up to 3\.403e\+38, got 1e\+300"):
        Dataset.from_arrays("raw", ([[0.0], [-1e300]], labels), scaled=False)
    with pytest.warns(DataWarning, match=r"'raw': inputs are kept .* rounds .* such as 16777217"):
        assert Dataset.from_arrays("raw", (raw, labels), scaled=False).inputs[1] == 2**24


def test_scaling_uses_one_range_for_training_and_test():
    train, test = np.array([[0.0], [10.0]]), np.array([[5.0], [20.0]])
    with pytest.warns(UserWarning, match="inputs from 0 to 20"):
        dataset = Dataset.from_arrays("raw", (train, np.array([0, 1])), (test, np.array([0, 1])))
    np.testing.assert_allclose(dataset.inputs[:, 0], [0, 0.5, 0.25, 1])


@pytest.mark.parametrize(
    ("shape", "stored"),
    [
        ((2, 6, 5), (2, 1, 6, 5)),
        ((2, 6, 5, 3), (2, 3, 6, 5)),
        ((2, 6, 5, 1), (2, 1, 6, 5)),
        ((2, 3, 6, 5), (2, 3, 6, 5)),
        ((2, 6, 5, 4), (2, 4, 6, 5)),
        ((2, 9, 5, 5), (2, 9, 5, 5)),
        ((2, 5, 5, 9), (2, 9, 5, 5)),
        ((2, 7), (2, 7)),
    ],
)
def test_images_become_channels_first(shape, stored, images):
    raw = np.random.default_rng(0).random(shape)
    dataset = Dataset.from_arrays("images", (raw, np.array([0, 1])))
    assert dataset.inputs.shape == stored
    if shape == (2, 6, 5, 3):
        np.testing.assert_allclose(dataset.inputs[1, 2], raw[1, :, :, 2], rtol=1e-6)


def test_dark_bytes_are_scaled_by_their_range_with_a_warning_unless_it_is_given():
    raw, labels = np.array([[0], [50], [100]], dtype=np.uint8), np.array([0, 1, 2])
    with pytest.warns(UserWarning, match="dataset 'dark': 8-bit inputs end at 100"):
        dataset = Dataset.from_arrays("dark", (raw, labels))
    np.testing.assert_allclose(dataset.inputs[:, 0], [0, 0.5, 1])
    dataset = Dataset.from_arrays("dark", (raw, labels), highest=200)
    np.testing.assert_allclose(dataset.inputs[:, 0], [0, 0.25, 0.5])
    with pytest.raises(DataError, match="must lie in 0 to highest=50"):
        Dataset.from_arrays("dark", (raw, labels), highest=50)


@pytest.mark.parametrize(
    "shape",
    [
        (6, 7, 5),
        (1, 100, 3),
        (2, 128, 4),
        (3, 100, 1),
        (1, 28, 1),
        (3, 3, 32),
        (8, 3, 3),
        (1, 1, 3),
    ],
)
def test_channels_that_sizes_do_not_tell_are_first_with_a_warning(shape):
    raw = np.random.default_rng(0).random((6, *shape))
    with pytest.warns(DataWarning, match=r"first, which the sizes do not tell; set channels='fir"):
        assert Dataset.from_arrays("images", (raw, LABELS)).input_shape == shape
    for channels, expected in (("first", shape), ("last", (shape[2], *shape[:2])), ("none", shape)):
        dataset = Dataset.from_arrays("images", (raw, LABELS), channels=channels)
        assert dataset.input_shape == expected


@pytest.mark.parametrize("shape", [(28, 28, 28), (4, 4, 4)])
def test_cubes_are_read_with_their_channels_first(shape):
    raw = np.random.default_rng(0).random((6, *shape))
    assert Dataset.from_arrays("volumes", (raw, LABELS)).input_shape == shape


def test_sequences_keep_their_axes():
    raw, labels = np.random.default_rng(0).random((2, 6, 30)), np.array([0, 1])
    dataset = Dataset.from_arrays("sequences", (raw, labels), channels="none")
    np.testing.assert_array_equal(dataset.inputs, raw.astype(np.float32))
    with pytest.raises(DataError, match=r"channels must be .* or 'none', got 'middle'"):
        Dataset.from_arrays("sequences", (raw, labels), channels="middle")


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
            {"domains": np.zeros(6), "domain_names": ("a",)},
            "domains must be one whole .*, got float64",
        ),
        ({"inputs": [[1.0]]}, "inputs must be an array of float32, got a list"),
        ({"targets": torch.tensor(LABELS)}, "targets must be an array of int64, got torch.int64"),
        ({"class_names": ("a", "b")}, "class_names must be one name .* 3 classes .*, got 2"),
        ({"class_names": 3}, "class_names must be names as text, got 3"),
        ({"domain_names": "ab"}, "domain_names must be names as text, got 'ab'"),
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


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ([Image.new("RGB", (2, 2)), Image.new("CMYK", (2, 2)), Image.new("I;16", (2, 2))], "2 of"),
        ([torch.ones(2), torch.ones(2, dtype=torch.uint8)], "got 1 of float32 and 1 of"),
        ([[np.ones(2, "u1")], [np.ones(2, ">u2")]], "got 1 of uint16 and 1 of"),
    ],
)
def test_images_and_tensors_of_8_bits_are_not_stacked_with_others(inputs, told):
    with pytest.raises(DataError, match=rf"inputs must be of one type, .*{told} uint8; convert"):
        Dataset.from_arrays("mixed", (inputs, [0, 1]))


@pytest.mark.parametrize("reading", [{"scaled": False}, {"highest": 90_000}])
@pytest.mark.parametrize("shape", [(3,), (3, 3)])
def test_samples_of_several_types_are_read_where_it_is_said_how(shape, reading):
    inputs = [np.full(shape, 2, "u2"), np.full(shape, 90_000, "i4"), np.full(shape, 0.5)]
    whole = Dataset.from_arrays("mixed", (inputs, [0, 1, 1]), **reading)
    by_torch = datasets.from_torch([*zip(inputs, [0, 1, 1], strict=True)], **reading)
    expected = np.array([2, 90_000, 0.5]) / reading.get("highest", 1)
    for found in (whole, by_torch):
        np.testing.assert_allclose(found.inputs.reshape(3, -1)[:, 0], expected, rtol=1e-6)


def test_rows_of_whole_numbers_may_differ_in_type():
    inputs = [np.array([1, 2], "u2"), np.array([0, 90_000], "i4")]
    with pytest.warns(DataWarning, match=r"whole numbers from 0 to 9e\+04 .* scaled=False"):
        Dataset.from_arrays("table", (inputs, [0, 1]))
    with pytest.warns(DataWarning, match=r"whole numbers from 0 to 9e\+04 .* scaled=False"):
        datasets.from_torch([*zip(inputs, [0, 1], strict=True)])


@pytest.mark.parametrize("kind", ["u2", ">u2", "?", "f4", "i8"])
def test_bytes_are_not_stacked_with_samples_of_another_type(kind):
    inputs = [np.full((4, 4), 255, "u1"), np.ones((4, 4), kind)]
    with pytest.raises(DataError, match=r"inputs must be of one type, .* and 1 of uint8; convert"):
        Dataset.from_arrays("mixed", (inputs, [0, 1]))


@pytest.mark.parametrize(
    ("train", "test"),
    [(("u1", 1), ("u1", 255)), (("i8", 200), ("i8", 1)), (("f8", 1), ("f8", 24))],
)
def test_parts_of_one_type_that_may_be_of_several_scales_are_told(train, test):
    first, second = ((INPUTS.round() * high).astype(kind)[:, None] for kind, high in (train, test))
    with pytest.warns(DataWarning) as told:
        found = Dataset.from_arrays("both", (first, LABELS), (second, LABELS))
    assert f"several scales, got training {first.dtype} up to {train[1]}" in str(told[0].message)
    assert found.inputs[6:].max() == np.float32(test[1]) / np.float32(max(train[1], test[1]))


def test_parts_of_several_types_that_may_be_of_several_scales_are_refused():
    first, second = INPUTS.round()[:, None], (INPUTS.round() * 200).astype(int)[:, None]
    with pytest.raises(DataError, match=r"must be of one scale, got .* test int64 up to 200; .*"):
        Dataset.from_arrays("both", (first, LABELS), (second, LABELS))


def test_a_part_of_zeros_and_ones_may_be_one_of_few_levels():
    for kind in ("u1", "f8"):
        low, high = np.eye(6, dtype=kind), 4 * np.eye(6, dtype=kind)
        assert Dataset.from_arrays("levels", (low, LABELS), (high, LABELS)).inputs.max() == 1


def test_the_order_of_bytes_does_not_matter():
    raw = np.full((6, 2, 2), 65535, ">u2")
    with pytest.raises(
        DataError, match=r"one scale, got training uint16 up to 65535, test float64"
    ):
        Dataset.from_arrays("both", (raw, LABELS), (np.ones((6, 2, 2)), LABELS))
    shape = 1, 2, 2
    assert Dataset.from_arrays("big", (raw, LABELS)).input_shape == shape


def test_arrays_that_cannot_be_read_are_told():
    class Lost:
        def __array__(self, *arguments, **options):
            raise OSError("disk")

    with pytest.raises(DataError, match=r"inputs cannot be read, OSError: disk") as raised:
        Dataset.from_arrays("lost", (Lost(), LABELS))
    assert isinstance(raised.value.__cause__, OSError)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 2, 1, 2], [0, 1, 0, 1]),
        (pd.Series([1, 2, 1, 2]), [0, 1, 0, 1]),
        (["0", "1.0", "0", "1"], [0, 1, 0, 1]),
        (pd.Series(["0", "1", "0", "1"]), [0, 1, 0, 1]),
        (["b", "a", "b", "a"], [1, 0, 1, 0]),
        (pd.Series(["b", "a", "b", "a"]), [1, 0, 1, 0]),
        (["a", 1, "a", 1], [1, 0, 1, 0]),
        ([5, 7, 5, 7], [0, 1, 0, 1]),
        ([0.0, 1e20, 0.0, 1e20], [0, 1, 0, 1]),
        ([0, 2**63, 0, 2**63], [0, 1, 0, 1]),
    ],
)
def test_what_is_told_to_be_done_about_labels_makes_them_right(labels, expected):
    inputs = np.eye(4)
    with pytest.raises(DataError) as raised:
        Dataset.from_arrays("own", (inputs, labels))
    told = re.findall("`(.*?)`", str(raised.value))
    remedy = next(one for one in told if "numpy" in one).removeprefix("classes, y = ")
    made = eval(remedy, {"numpy": np, "y": labels})
    made = made[1] if isinstance(made, tuple) else made
    assert Dataset.from_arrays("own", (inputs, made)).targets.tolist() == expected


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_of_labels_are_told_to_become_rows(kind):
    own = [kind(one) for one in ([0], [1], [0, 1], [])]
    with pytest.raises(
        DataError, match=r"become a row of 0 and 1 each, .*`\[one in own for one in"
    ):
        Dataset.from_arrays("own", (np.eye(4), own))
    rows = [[one in each for one in (0, 1)] for each in own]
    found = Dataset.from_arrays("own", (np.eye(4), rows))
    assert found.labelled(found.targets).tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize("turned", [False, True])
def test_parts_of_labels_of_two_kinds_are_told(turned):
    parts = [(np.eye(2), [0, 1]), (np.eye(2), [[1, 0], [0, 1]])]
    with pytest.raises(
        DataError, match=r"in all parts alike, got training .*; .*argmax\(y, axis=1\)"
    ):
        Dataset.from_arrays("own", *parts[:: -1 if turned else 1])
    same = (np.eye(2), np.argmax(parts[1][1], axis=1))
    assert Dataset.from_arrays("own", parts[0], same).targets.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("writers", "expected"),
    [
        (np.array([2**63 + 1, 2**63 + 2, 7, 7], np.uint64), [1, 2, 0, 0]),
        ([1, 1, 4, 4], [1, 1, 4, 4]),
        ([1.0, 1.0, 4.0, 4.0], [1, 1, 4, 4]),
        (["b", "b", "a", "c"], [1, 1, 0, 2]),
        ([True, False, True, False], [1, 0, 1, 0]),
    ],
)
def test_writers_are_read_by_one_rule(writers, expected):
    inputs, labels = np.eye(4), [0, 1, 0, 1]
    own = datasets.from_numpy(inputs, labels, writers=writers)
    for found in (own, replace(datasets.from_numpy(inputs, labels), writers=writers)):
        assert found.writers.tolist() == expected


@pytest.mark.parametrize("writers", [[2**63 + 1, 2**63 + 2, 7, 7], [0.0, 1e20, 1.0, 1.0]])
def test_writers_that_are_no_exact_numbers_can_be_names(writers):
    with pytest.raises(
        DataError, match=r"got float64 of shape .*; `\[\*map\(str, writers\)\]` makes"
    ):
        datasets.from_numpy(np.eye(4), [0, 1, 0, 1], writers=writers)
    found = datasets.from_numpy(np.eye(4), [0, 1, 0, 1], writers=[*map(str, writers)])
    assert len(set(found.writers.tolist())) == 3


@pytest.mark.parametrize("kind", [np.int64, np.uint8, float])
def test_types_alone_do_not_refuse_tables_and_one_scale_is_told_once(kind):
    parts = (np.array([[0, 20], [1, 3]], kind), [0, 1]), ([[0.0, 1.0]], [0])
    with pytest.warns(DataWarning, match=r"may be of several scales, got training .* 20") as warned:
        found = Dataset.from_arrays("table", *parts)
    assert len(warned) == 1
    np.testing.assert_allclose(found.inputs[:, 1], [1, 0.15, 0.05])
    images = (np.array([[[0, 200], [1, 3]]]), [0]), (np.ones((1, 2, 2)), [0])
    with pytest.raises(DataError, match=r"inputs of all parts must be of one scale"):
        Dataset.from_arrays("images", *images)


def test_numbers_beyond_float32_are_scaled():
    largest = 1.7e308
    for inputs in ([[0, 1e300], [5e299, 0]], [[0, largest / 2], [largest / 4, 0]]):
        highest = float(np.max(inputs))
        found = Dataset.from_arrays("large", (inputs, [0, 1]), highest=highest)
        np.testing.assert_allclose(found.inputs, [[0, 1], [0.5, 0]])
    with pytest.warns(DataWarning, match=r"inputs from -1\.7e\+308 to 1\.7e\+308 are scaled"):
        found = Dataset.from_arrays("range", ([[-largest, 0], [largest, 0]], [0, 1]))
    np.testing.assert_allclose(found.inputs, [[0, 0.5], [1, 0.5]])
