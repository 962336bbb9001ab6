"""Data sets of arrays, torch and Hugging Face."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.sparse import csr_array
from torch.utils.data import DataLoader, TensorDataset

from bcfl import ClientData
from experiments import datasets
from experiments.datasets import DataError, DataWarning
from tests.unit.experiments.datasets.small_sources import Pictures, Rows

X, Y = np.random.default_rng(0).random((6, 2, 3)), np.arange(6) % 2


class Damaged(Pictures):
    def __getitem__(self, index):
        if index == 2:
            raise OSError("scan")
        return super().__getitem__(index)


class Splits(dict):
    """As a `DatasetDict`."""


def table(count, inputs="image", targets="label"):
    pictures = Pictures(count)
    rows = [pictures[index] for index in range(count)]
    return Rows({inputs: [x for x, _ in rows], targets: [y for _, y in rows]})


FRAME = pd.DataFrame({"a": [0.0, 1, 0.5], "b": [1.0, 0, 0], "label": [0, 1, 0]})

PAIRS = TensorDataset(torch.rand(4, 3), torch.arange(4) % 2)


def test_tensors_of_numpy():
    inputs = torch.rand(6, 3, requires_grad=True)
    found = datasets.from_numpy(inputs, torch.arange(6.0) % 2, (inputs.bfloat16(), Y))
    np.testing.assert_array_equal(found.inputs[:6], inputs.detach().numpy())
    np.testing.assert_allclose(found.inputs[6:], found.inputs[:6], atol=0.01)
    with pytest.raises(DataError, match=r"inputs must be a dense tensor, got torch\.sparse"):
        datasets.from_numpy(inputs.detach().to_sparse(), Y)
    with pytest.raises(
        DataError, match=r"inputs must be a dense array, got .*toarray\(\)` makes one"
    ):
        datasets.from_numpy(csr_array(X[0]), Y[:2])
    with pytest.raises(
        DataError, match=r"\(training part\): inputs must be an array of numbers: .*grad"
    ):
        datasets.from_numpy([*inputs], Y)


@pytest.mark.parametrize(
    ("writers", "message"),
    [
        (np.arange(6) / 2, "be one whole number or name per sample"),
        ([1, "a"] * 3, "be one whole number or name per sample"),
        ([None, "a"] * 3, r"not be missing, .* 3 of 6 samples, the first of them None in sample 0"),
        (["a", np.nan] * 3, "not be missing, .* 3 of 6 samples, .* nan in sample 1"),
        (np.full(6, np.nan), "be finite, got NaN or inf in 6 of 6 samples"),
        (np.ma.array(Y, mask=Y == 1), "not be masked, .* 3 of 6 samples, .* in sample 1"),
    ],
)
def test_writers_are_whole_numbers_or_names(writers, message):
    with pytest.raises(DataError, match=f"'arrays': writers must {message}"):
        datasets.from_numpy(X, Y, writers=writers)


def test_numpy():
    inputs, targets = np.random.default_rng(0).random((6, 3)), np.arange(6) % 2
    found = datasets.from_numpy(inputs, targets, (inputs[:2], targets[:2]), writers=[*"abcabcaa"])
    assert (found.num_native_test, found.input_shape, found.name) == (2, (3,), "arrays")
    assert found.writers.tolist() == [0, 1, 2, 0, 1, 2, 0, 0]
    with pytest.raises(
        DataError, match=r"one for each of the 8 samples, 6 of training and then 2 of .*, got 2"
    ):
        datasets.from_numpy(inputs, targets, (inputs[:2], targets[:2]), writers=[*"ab"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((X, Y), (X, Y)), r"inputs and targets must be two arguments, .* got a tuple as inputs"),
        ((([[1, 2], [1]], Y[:2]), Y[:2]), "be two arguments, .* got a tuple as inputs"),
        (([X[0], X[1, :1]], Y[:2]), "inputs must be an array .* got a list whose parts differ"),
        ((X, Y, X), r"test samples must be a pair \(inputs, labels\), got a ndarray"),
        ((X, Y, (X,)), "got a tuple of length 1"),
    ],
)
def test_numpy_arrays_that_are_no_samples(arguments, message):
    with pytest.raises(DataError, match=message):
        datasets.from_numpy(*arguments)


def test_torch():
    tensors = TensorDataset(torch.rand(6, 1, 4, 4), torch.arange(6) % 3)
    found = datasets.from_torch(tensors, TensorDataset(torch.rand(3, 1, 4, 4), torch.arange(3)))
    assert (len(found), found.num_native_test, found.input_shape) == (9, 3, (1, 4, 4))
    np.testing.assert_array_equal(found.inputs[:6], tensors.tensors[0].numpy())
    pictures = datasets.from_torch(Pictures(4), name="own")
    assert (pictures.input_shape, pictures.targets.tolist()) == ((3, 4, 5), [0, 1, 0, 1])
    np.testing.assert_allclose(pictures.inputs[3, :, 0, 0] * 255, [150, 0, 255], atol=1e-4)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([1, 2], r"\(training part\): data must be pairs of an input and a target"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 1)], "agree in shape"),
    ],
)
def test_torch_data_that_are_no_pairs(pairs, message):
    with pytest.raises(DataError, match=message):
        datasets.from_torch(pairs)


def test_errors_of_a_torch_data_set_are_told():
    message = r"'own' \(test part\): .*sample 2 of Damaged raised OSError: scan"
    with pytest.raises(DataError, match=message) as raised:
        datasets.from_torch(Pictures(4), Damaged(4), name="own")
    assert isinstance(raised.value.__cause__, OSError)


def test_samples_of_torch_may_have_further_parts():
    samples = [
        (image, label, "more") for image, label in (Pictures(4)[index] for index in range(4))
    ]
    with pytest.warns(
        DataWarning, match="only the first two parts of each sample of list are read"
    ) as told:
        found = datasets.from_torch(samples)
    assert found.targets.tolist() == [0, 1, 0, 1]
    assert [one.filename for one in told] == [__file__]


def test_one_source_is_read_alike_by_all():
    """Whatever a converter is named after."""
    rows = [{"id": index, "image": x, "label": y} for index, (x, y) in enumerate(PAIRS)]
    numbers = [{"x": 0.1, "age": 0.5, "label": 0}, {"x": 0.2, "age": 0.9, "label": 1}]
    for source, inputs in (
        (PAIRS, PAIRS.tensors[0]),
        (DataLoader(PAIRS, batch_size=3), PAIRS.tensors[0]),
        (rows, PAIRS.tensors[0]),
        (numbers, [[0.1, 0.5], [0.2, 0.9]]),
    ):
        expected = torch.as_tensor(inputs).numpy()
        for convert in (datasets.from_torch, datasets.from_huggingface):
            np.testing.assert_allclose(convert(source).inputs, expected)
        view = ClientData.from_dataset("a", source, source).views["test"]
        np.testing.assert_allclose(view.inputs, expected)


def test_huggingface():
    found = datasets.from_huggingface(Splits(train=table(4), test=table(2)), name="own")
    assert (len(found), found.num_native_test, found.input_shape) == (6, 2, (3, 4, 5))
    assert datasets.from_huggingface(table(4)).num_native_test == 0
    other = table(4, inputs="scan", targets="kind")
    with pytest.raises(
        DataError, match=r"name the column of the targets, one of \['scan', 'kind'\]; set targets"
    ):
        datasets.from_huggingface(other)
    named = datasets.from_huggingface(other, inputs="scan", targets="kind")
    np.testing.assert_array_equal(named.inputs, found.inputs[:4])
    other.columns["scan"][2] = None
    with pytest.raises(
        DataError, match=r"samples must not be missing, .* first of them None in samp"
    ):
        datasets.from_huggingface(other, inputs="scan", targets="kind")
    with pytest.raises(DataError, match="must have a split train, got test"):
        datasets.from_huggingface(Splits(test=table(2)))


def test_validation_samples_of_huggingface_are_training_samples_beside_a_test_set():
    splits = Splits(train=table(4), validation=table(3), test=table(2))
    found = datasets.from_huggingface(splits)
    assert (len(found), found.num_native_test) == (9, 2)
    assert datasets.from_huggingface(splits, test=table(4)).num_native_test == 4
    held = datasets.from_huggingface(Splits(train=table(4), validation=table(3)))
    assert held.num_native_test == 3


def test_a_second_validation_split_of_huggingface_is_told_unless_it_is_the_test_set():
    splits = Splits(train=table(4), validation=table(3), dev=table(2), test=table(2))
    with pytest.warns(DataWarning, match="splits that are not read: dev; test=SPLIT"):
        datasets.from_huggingface(splits)
    found = datasets.from_huggingface(splits, test=splits["dev"])
    assert (len(found), found.num_native_test) == (9, 2)


def test_other_splits_of_huggingface_are_told():
    found = datasets.from_huggingface(Splits(train=table(4), dev=table(3)))
    assert (len(found), found.num_native_test) == (7, 3)
    with pytest.warns(DataWarning, match="splits that are not read: extra, more; test=SPLIT"):
        found = datasets.from_huggingface(Splits(train=table(4), extra=table(3), more=table(3)))
    assert len(found) == 4


@pytest.mark.parametrize("convert", ["numpy", "torch", "huggingface"])
def test_unknown_options_are_refused_before_anything_is_read(convert):
    given = [None] * (1 + (convert == "numpy"))
    with pytest.raises(DataError, match=r"'higest' is none of .*Did you mean 'highest'\?"):
        getattr(datasets, f"from_{convert}")(*given, higest=255)


def test_a_split_that_is_the_test_set_is_not_trained_on():
    hidden = Rows({**table(2).columns, "label": [-1, -1]})
    splits = Splits(train=table(4), validation=table(3), test=hidden)
    with pytest.raises(DataError, match=r'all labels are -1, .*test=data\["validation"\]'):
        datasets.from_huggingface(splits)
    found = datasets.from_huggingface(splits, test=splits["validation"])
    assert (len(found), found.num_native_test) == (7, 3)


@pytest.mark.parametrize("convert", ["numpy", "torch", "huggingface"])
def test_warnings_point_at_the_line_that_made_the_data_set(convert):
    numbers = np.arange(12.0).reshape(6, 2) * 2
    given = {
        "numpy": (numbers, Y),
        "torch": (list(zip(numbers, Y, strict=True)),),
        "huggingface": (Rows({"x": numbers, "y": Y}),),
    }[convert]
    with pytest.warns(UserWarning, match=r"inputs from 0 to 22 .* keys of \[data\]") as told:
        getattr(datasets, f"from_{convert}")(*given)
    assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize("convert", ["numpy", "torch", "huggingface"])
def test_values_are_kept_or_divided_where_that_is_asked_for(convert):
    numbers = np.random.default_rng(0).integers(1, 128, (6, 2, 5)).astype(np.uint8)
    given = {
        "numpy": (numbers, Y),
        "torch": (list(zip(numbers, Y, strict=True)),),
        "huggingface": (Rows({"x": numbers, "y": Y}),),
    }[convert]
    read = getattr(datasets, f"from_{convert}")
    np.testing.assert_array_equal(read(*given, scaled=False).inputs[:, 0], numbers)
    np.testing.assert_array_equal(read(*given, highest=255).inputs[:, 0] * 255, numbers)
    assert read(*given, highest=255, channels="none").input_shape == (2, 5)


@pytest.mark.parametrize("convert", ["torch", "huggingface"])
@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0.0, 1.0], [0, 1]),
        ([False, True], [0, 1]),
        ([[1], [0]], [1, 0]),
        ([[1, 0], [1, 1]], [[1, 0], [1, 1]]),
        ([0.2, 0.9], "labels must be integers 0 to k - 1, got type float"),
        (["no", "yes"], "labels must be integers 0 to k - 1, got type <U"),
        ([None, 1], "labels must not be missing, .* 1 of 2 samples, .* None in sample 0"),
        ([[1, 0], [0, 1]], [0, 1]),
        ([], "at least one sample"),
    ],
)
def test_labels_are_whole_numbers_and_never_rounded(convert, labels, expected):
    samples = list(zip(np.eye(2), labels, strict=False))
    data = Rows({"x": [x for x, _ in samples], "y": labels}) if convert != "torch" else samples
    read = getattr(datasets, f"from_{convert}")
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected):
            read(data)
    else:
        found = read(data)
        assert found.labelled(found.targets).tolist() == expected


@pytest.mark.filterwarnings("ignore")
def test_splits_of_hugging_face():
    package = pytest.importorskip("datasets", reason="datasets of Hugging Face is not installed")
    columns = {"a": [0.0, 0.5, 1.0], "b": [1.0, 0.5, 0.0], "label": [0, 1, 2]}
    data = package.Dataset.from_dict(columns)
    splits = package.DatasetDict(train=data, test=data.select([2, 0]))
    found = datasets.from_huggingface(splits, inputs=["a", "b"])
    assert (found.num_native_test, found.targets.tolist()) == (2, [0, 1, 2, 2, 0])
    assert found.inputs[3].tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match=r"IterableDataset might have no end; .*data\.take"):
        datasets.from_huggingface(data.to_iterable_dataset())


def test_pictures_of_8_and_16_bits_are_not_stacked():
    pictures = [Image.fromarray(np.full((4, 4), 255, kind)) for kind in ("u1", "u2")]
    message = r"inputs must be of one type, .*, got 1 of uint16 and 1 of uint8; convert"
    with pytest.raises(DataError, match=message):
        datasets.from_torch(list(zip(pictures, [0, 1], strict=True)))
    with pytest.raises(DataError, match=message):
        datasets.from_huggingface(Rows({"image": pictures, "label": [0, 1]}))


def test_labels_may_differ_in_type():
    labels = [np.uint8([0]), np.array([1])]
    for found in (
        datasets.from_numpy(X[:2], labels),
        datasets.from_torch([(X[0], labels[0]), (X[1], labels[1])]),
        datasets.from_huggingface(Rows({"x": X[:2], "y": labels})),
    ):
        assert found.targets.tolist() == [0, 1]


def test_masked_samples_are_refused():
    masked = np.ma.array([0.1, 0.9], mask=[0, 1])
    with pytest.raises(
        DataError, match=r"sample 1 of list raised TypeError: it must not be masked"
    ):
        datasets.from_torch([(X[0, 0, :2], 0), (masked, 1)])


def test_channels_that_seem_to_be_last_are_told():
    raw = np.random.default_rng(0).integers(0, 256, (6, 8, 7, 3)).astype(np.uint8)
    samples = list(zip(raw, Y, strict=True))
    with pytest.warns(DataWarning, match=r"shape \(8, 7, 3\) .* set channels='last'"):
        assert datasets.from_torch(samples).input_shape == (8, 7, 3)
    assert datasets.from_torch(samples, channels="last").input_shape == (3, 8, 7)
    assert datasets.from_torch(samples, channels="first").input_shape == (8, 7, 3)
    with pytest.warns(DataWarning, match=r"set channels='last'"):
        datasets.from_huggingface(Rows({"x": raw, "y": Y}))


def test_channels_that_are_set_last_but_seem_to_be_first_are_told():
    samples = [(Image.new("RGB", (8, 7), (9, 99, 255)), label) for label in (0, 1)]
    with pytest.warns(DataWarning, match=r"shape \(3, 7, 8\) .* last, as set, .* channels='first'"):
        assert datasets.from_torch(samples, channels="last").input_shape == (8, 3, 7)
    assert datasets.from_torch(samples, channels="first").input_shape == (3, 7, 8)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"labels": [1, 0, 1, 0]}, r"; 'label' and 'labels' might be it; set targets=NAME"),
        ({"x": [1, 0, 1, 0]}, r"one column of arrays or .*; inputs='image' leaves out the others"),
    ],
)
def test_of_several_usual_columns_none_is_taken(more, message):
    with pytest.raises(DataError, match=message):
        datasets.from_huggingface(Rows({**table(4).columns, **more}))


def test_fine_labels_are_taken_beside_coarse_ones():
    coarse = {"coarse_label": [0, 0, 0, 0]}
    found = datasets.from_huggingface(Rows({**table(4, targets="fine_label").columns, **coarse}))
    assert found.targets.tolist() == [0, 1, 0, 1]


def test_a_torch_data_set_may_have_attributes_of_other_sources():
    data = TensorDataset(torch.eye(2), torch.arange(2))
    data.columns, data.batch_size, data.dataset, data.classes = (
        ["age", "weight", "height"],
        4,
        None,
        None,
    )
    assert datasets.from_torch(data).targets.tolist() == [0, 1]


@pytest.mark.parametrize("convert", [datasets.from_torch, datasets.from_huggingface])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, r"data must be .*, got None \(NoneType\)"),
        (3, r"data must be .*, got 3 \(int\)"),
        ("mnist", r"data must be samples, got the path 'mnist'"),
        ((row for row in X), r"data must have a length, .* generator might have no end"),
    ],
)
def test_sources_without_samples_of_their_own_are_told(convert, data, message):
    with pytest.raises(DataError, match=rf"\(training part\): .*{message}"):
        convert(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((FRAME,), r"got a DataFrame; .* by from_huggingface\(data, inputs=.*or .* from_numpy$"),
        (({"train": PAIRS},), r"got splits \['train'\]; give one of them, such as data\['train'\]"),
        ((PAIRS, {"own": PAIRS}), r"\(test part\).* such as data\['own'\]; arrays .*from_numpy of"),
        (({"x": X, "y": Y},), r"arrays of inputs .* or from_numpy"),
        ((X[0], Y), r"got ndarray as sample 0 of ndarray; arrays of .* or from_numpy"),
        (((X, Y),), r"got ndarray as sample 0 of tuple; arrays of .* or from_numpy"),
        ((torch.rand(2, 3), Y), r"got Tensor as sample 0 of Tensor; arrays of .* or from_numpy"),
    ],
)
def test_what_to_give_in_place_of_other_sources_is_told(data, message):
    with pytest.raises(DataError, match=message):
        datasets.from_torch(*data)


def test_columns_of_a_data_frame_are_read_by_name():
    for inputs in (["a", "b"], np.array(["a", "b"]), pd.Index(["a", "b"]), iter("ab")):
        found = datasets.from_huggingface({"train": FRAME, "test": FRAME}, inputs=inputs)
        assert (found.input_shape, found.num_native_test) == ((2,), 3)
    for inputs, message in (([], "at least one column"), ("", "have a column ''")):
        with pytest.raises(DataError, match=f"must .*{message}"):
            datasets.from_huggingface(FRAME, inputs=inputs)
    numbered = pd.DataFrame({0: [0.0, 1.0], "label": [0, 1]})
    assert datasets.from_huggingface(numbered, inputs=0).inputs.tolist() == [[0.0], [1.0]]


def test_an_empty_split_of_validation_is_left_out():
    splits = Splits(train=table(4), validation=Rows({"image": [], "label": []}))
    assert datasets.from_huggingface(splits).num_native_test == 0
    found = datasets.from_huggingface(Splits(**splits, test=table(2)))
    assert (len(found), found.num_native_test) == (6, 2)
    with pytest.raises(DataError, match=r"\(test part\): .* at least one sample"):
        datasets.from_huggingface(Splits(train=table(4), test=splits["validation"]))


def test_splits_of_huggingface_have_the_names_that_folders_have():
    found = datasets.from_huggingface(Splits(training=table(4), testing=table(2), val=table(3)))
    assert (len(found), found.num_native_test) == (9, 2)


@pytest.mark.parametrize(("part", "hint"), [("training", "$"), ("test", "; give another one as")])
def test_labels_that_are_all_missing_are_told_by_part(part, hint):
    none = (X[:2], [-1, -1])
    given = none if part == "training" else (X, Y, none)
    with pytest.raises(DataError, match=rf"\({part} part\): all labels are -1, .*labels{hint}"):
        datasets.from_numpy(*given)
