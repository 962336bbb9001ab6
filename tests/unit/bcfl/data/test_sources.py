"""Clients from data sets of other libraries."""

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, TensorDataset

from bcfl import ClientData
from bcfl.data.sources import target_column
from bcfl.runtime import DataWarning
from experiments import datasets
from tests.unit.bcfl.data.small_sources import FRAME, Columns, Endless, Mappings, X, Y, hugging_face


class Pictures(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return Image.fromarray(np.zeros((4, 5, 3), dtype=np.uint8)), 0


class OnlyFirst(Dataset):
    """Pairs, of which no more than the first may be read."""

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        assert index == 0
        return X[0], 0


@pytest.mark.parametrize(
    "source",
    [TensorDataset(X, Y), DataLoader(TensorDataset(X, Y), batch_size=4), FRAME, Columns()],
    ids=["torch", "loader", "pandas", "columns"],
)
def test_samples_keep_values_and_order(source):
    data = ClientData.from_dataset("c", source, test=source, group=1)
    for view in data.views.values():
        assert torch.equal(view.inputs, X)
        assert torch.equal(view.targets, Y)
    assert (list(data.views), data.group) == (["train", "test"], 1)


def test_channels_of_images_come_first():
    data = ClientData.from_dataset("c", Pictures())
    assert tuple(data.views["train"].inputs.shape) == (1, 3, 4, 5)


@pytest.mark.parametrize("kind", ["grey", "bfloat16", "gradient"])
def test_samples_that_numpy_does_not_read(kind):
    sample = {
        "grey": Image.fromarray(np.zeros((4, 5), dtype=np.uint8)),
        "bfloat16": torch.zeros(1, 4, 5, dtype=torch.bfloat16),
        "gradient": torch.zeros(1, 4, 5, requires_grad=True),
    }[kind]
    data = ClientData.from_dataset("c", [(sample, 0)])
    assert tuple(data.views["train"].inputs.shape) == (1, 1, 4, 5)


def test_columns_are_chosen_by_name():
    data = ClientData.from_dataset("c", FRAME, inputs=["b"], targets="a")
    assert torch.equal(data.views["train"].inputs, X[:, 1:])  # one axis, as networks expect
    assert torch.equal(data.views["train"].targets, X[:, 0])


def test_columns_that_are_not_there_are_named():
    with pytest.raises(ValueError, match=r"must have a column 'z', got \['a', 'b', 'label'\]"):
        ClientData.from_dataset("c", FRAME, inputs="z")
    with pytest.raises(TypeError, match="inputs and targets name columns"):
        ClientData.from_dataset("c", TensorDataset(X, Y), targets="y")


def test_columns_of_samples_without_names_are_refused_before_reading():
    with pytest.raises(TypeError, match="samples of OnlyFirst have not; leave both out for pairs"):
        ClientData.from_dataset("c", OnlyFirst(), inputs="x")


def test_samples_may_differ_in_type_as_none_is_scaled():
    pairs = [(np.full(2, 255, "u1"), np.uint8([1])), (np.full(2, 0.5, "f4"), np.array([0]))]
    view = ClientData.from_dataset("c", pairs).views["train"]
    assert view.inputs.tolist() == [[255, 255], [0.5, 0.5]]
    assert view.targets.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["y", "x", "label"], "label"),
        (["fine_label", "target", "y"], "target"),
        (["fine_label", "coarse_label"], "fine_label"),
        (["y"], "y"),
    ],
)
def test_less_usual_columns_of_targets_count_only_where_there_is_no_other(names, found):
    assert target_column(None, names) == found


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["label", "y", "target"], "; 'label' and 'target' might be it"),
        (["y", "fine_label"], "; 'y' and 'fine_label' might be it"),
        (["x"], ""),
    ],
)
def test_several_usual_columns_of_targets_are_told_with_the_argument(names, told):
    with pytest.raises(ValueError, match=rf"one of \[.*\]{told}; set targets=NAME"):
        target_column(None, names)


@pytest.mark.parametrize("source", [Endless(), TensorDataset(X, Y), FRAME, (X,)])
def test_arrays_are_pairs(source):
    with pytest.raises(TypeError, match=r"pair \(inputs, targets\).*ClientData.from_dataset"):
        ClientData.from_arrays("c", source)
    with pytest.raises(TypeError, match="view 'train': must be a View, got a"):
        ClientData("c", {"train": source})


def test_arrays_of_pairs_are_lists_too():
    data = ClientData.from_arrays("c", [np.zeros((2, 3)), [0, 1]])
    assert len(data.views["train"]) == 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format", [None, "torch", "numpy", "pandas", "arrow"])
def test_images_of_hugging_face_in_any_format(format):
    images, data = hugging_face(format)
    view = ClientData.from_dataset("c", data).views["train"]
    assert torch.equal(view.inputs, images.float())
    assert view.targets.tolist() == [0, 1, 1, 0]


@pytest.mark.filterwarnings("ignore")
def test_a_transform_of_hugging_face_sees_whole_samples():
    images, data = hugging_face()
    pixels = data.with_transform(
        lambda batch: {
            "pixels": [np.moveaxis(np.asarray(image), 2, 0) for image in batch["image"]],
            "label": batch["label"],
        }
    )
    view = ClientData.from_dataset("c", pixels).views["train"]
    assert torch.equal(view.inputs, images.float())


def test_samples_that_are_mappings_are_read_by_their_names():
    data = ClientData.from_dataset("a", Mappings(), inputs="image")
    assert torch.equal(data.views["train"].inputs, X)
    assert torch.equal(data.views["train"].targets, Y)
    with pytest.raises(ValueError, match=r"must have a column 'label', got \['image', 'more'"):
        ClientData.from_dataset("a", Mappings(), inputs="image", targets="label")


@pytest.mark.parametrize(
    ("frame", "inputs"), [(pandas.concat([FRAME, FRAME[["a"]]], axis=1), None), (FRAME, ["a", "a"])]
)
def test_repeated_columns_are_told(frame, inputs):
    with pytest.raises(ValueError, match=r"names of their own, got \['a'\] twice"):
        ClientData.from_dataset("a", frame, inputs=inputs)


def test_the_targets_are_not_among_the_inputs():
    with pytest.raises(ValueError, match="must not hold the column of the targets"):
        ClientData.from_dataset("a", FRAME, inputs=["a", "label"])


@pytest.mark.parametrize(
    ("columns", "targets", "left_out"),
    [
        ({"label": [0, 1, 0], "y": [0, 1, 0]}, None, "y"),
        ({"label": ["no", "yes", "no"], "y": [0, 1, 0]}, None, "y"),
        ({"label": [0, 1, 0], "fine_label": [2, 3, 2]}, None, "fine_label"),
        ({"label": [0, 1, 0], "y": [0, 1, 0]}, "y", "label"),
    ],
)
def test_other_usual_columns_of_targets_are_no_inputs(columns, targets, left_out):
    frame = pandas.DataFrame({"f": [1.0, 2.0, 3.0]} | columns)
    classes = ["no", "yes"] if columns["label"][0] == "no" else None
    options = {"targets": targets, "classes": classes}
    told = rf"columns \['{left_out}'\] are left out .* inputs=\['f', '{left_out}'\]"
    with pytest.warns(DataWarning, match=told) as warned:
        assert ClientData.from_dataset("ann", frame, frame, **options).columns == ("f",)
    assert len(warned) == 1
    named = ClientData.from_dataset("ann", frame, inputs=["f", left_out], **options)
    assert named.columns == ("f", left_out)


def test_a_loader_may_give_samples_in_place_of_batches():
    images = TensorDataset(X.reshape(6, 1, 1, 2), Y)
    for loader in (DataLoader(images, batch_size=None), DataLoader(images, batch_size=4)):
        view = ClientData.from_dataset("ann", loader).views["train"]
        torch.testing.assert_close(view.inputs, X.reshape(6, 1, 1, 2))
        assert view.targets.tolist() == Y.tolist()
    uneven = DataLoader(images, batch_size=3, collate_fn=lambda batch: (X[:3], Y[:2]))
    with pytest.raises(ValueError, match=r"one row per sample, got inputs \(3, 2\) and targets"):
        ClientData.from_dataset("ann", uneven)


def test_labels_that_differ_in_number_are_told_to_become_rows():
    targets, labels = [[0, 1], [1], [2, 0]], [0, 1, 2]
    told = r"targets must agree in shape, .*: `\[one in own for one in labels\]` in place of"
    with pytest.raises(ValueError, match=told):
        ClientData.from_dataset("ann", [*zip(X[:3], targets, strict=True)])
    for convert in (datasets.from_numpy, lambda *pair: ClientData.from_arrays("ann", pair)):
        with pytest.raises((TypeError, ValueError), match=r"(labels|targets) .* differ in shape; "):
            convert(X[:3], targets)
    rows = [[one in own for one in labels] for own in targets]
    assert ClientData.from_dataset("ann", [*zip(X[:3], rows, strict=True)]).num_samples
    assert datasets.from_numpy(X[:3], rows).num_outputs == 3


def test_a_torch_data_set_with_names_of_columns_gives_pairs():
    data = TensorDataset(X, Y)
    data.columns = ["a", "b"]
    assert ClientData.from_dataset("a", data).num_samples == {"train": len(Y)}
