"""How values are scaled, and where images have their channels."""

import numpy as np
import pytest

from experiments.datasets import DataError, Dataset, DataWarning

INPUTS = np.linspace(0, 1, 12).reshape(6, 2)

LABELS = np.array([0, 1, 2, 0, 1, 2])


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
        ({"highest": "255"}, "highest must be a number above 0 .*, got '255'"),
        ({"highest": 0}, "highest must be a number above 0 .*, got 0"),
        ({"highest": 1e-50}, "highest must be a number above 0 .*, got 1e-50"),
        ({"highest": np.inf}, "highest must be a number above 0 .*, got inf"),
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


@pytest.mark.parametrize("options", [{}, {"scaled": False}, {"highest": 3e38}])
def test_numbers_beyond_float32_are_refused(options):
    large = np.array([[0.0], [-1e300]])
    with pytest.raises(DataError, match=r"up to 3\.403e\+38, got -1e\+300 to 0"):
        Dataset.from_arrays("raw", (large, [0, 1]), **options)
    with pytest.raises(DataError, match=r"number above 0 that float32 holds, got 1e\+300"):
        Dataset.from_arrays("raw", (large, [0, 1]), highest=1e300)
    assert Dataset.from_arrays("raw", (large / 1e300 + 1, [0, 1])).inputs.tolist() == [[1], [0]]
