"""Archives of other shapes: MedMNIST, samples without a split, images as JPEG."""

import io

import numpy as np
import pytest
from PIL import Image

from experiments import datasets
from experiments.datasets import DataError, DataWarning

SIZES = {"train": 12, "val": 6, "test": 9}


def medical(shape, classes=3, **changes):
    rng = np.random.default_rng(0)
    arrays = {}
    for part, size in SIZES.items():
        arrays[f"{part}_images"] = rng.integers(0, 256, (size, *shape), dtype=np.uint8)
        arrays[f"{part}_labels"] = (np.arange(size) % classes)[:, None]
    return {key: array for key, array in (arrays | changes).items() if array is not None}


COLOURED = {"path": 9, "derma": 7, "retina": 5, "blood": 8}
GREY = {"oct": 4, "pneumonia": 2, "breast": 2, "tissue": 8, "organa": 11, "organc": 11}
GREY |= {"organs": 11}
VOLUMES = {"organ": 11, "nodule": 2, "adrenal": 2, "fracture": 3, "vessel": 2, "synapse": 2}
MEDICAL = [
    *((f"{name}mnist", (28, 28, 3), (3, 28, 28), many) for name, many in COLOURED.items()),
    *((f"{name}mnist", (28, 28), (1, 28, 28), many) for name, many in GREY.items()),
    *((f"{name}mnist3d", (28,) * 3, (1, 28, 28, 28), many) for name, many in VOLUMES.items()),
    ("pathmnist_64", (64, 64, 3), (3, 64, 64), 9),
    ("octmnist_128", (128, 128), (1, 128, 128), 4),
    ("organsmnist_224", (224, 224), (1, 224, 224), 11),
    ("nodulemnist3d_64", (64, 64, 64), (1, 64, 64, 64), 2),
]


@pytest.mark.parametrize(("name", "shape", "expected", "classes"), MEDICAL)
def test_medmnist(tmp_path, name, shape, expected, classes):
    arrays = medical(shape, 2)
    folder = tmp_path / ("medmnist" if "_" in name else "")
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{name}.npz", **arrays)
    found = datasets.load(name, data_dir=tmp_path)
    assert (len(found), found.num_native_test, found.num_classes) == (27, 9, classes)
    assert found.input_shape == expected
    last = arrays["val_images"][-1] / 255
    kept = found.inputs[17] if len(shape) < 3 or shape[-1] != 3 else np.moveaxis(last, 2, 0)
    np.testing.assert_allclose(found.inputs[17], kept.reshape(expected), atol=1e-6)
    np.testing.assert_allclose(found.inputs[17].mean(), last.mean(), atol=1e-5)
    assert found.targets.tolist() == [n % 2 for size in SIZES.values() for n in range(size)]
    info = {info.name: info for info in datasets.available(tmp_path)}[name]
    assert info.found
    assert f"{'x'.join(map(str, shape))}, {classes} classes" in info.description


def test_images_of_medmnist_in_another_size_are_told(tmp_path):
    np.savez(tmp_path / "bloodmnist_64.npz", **medical((64, 64, 3)))
    for name in ("bloodmnist", "bloodmnist_128"):
        with pytest.raises(DataError, match=r"has images of another size: bloodmnist_64\. Search"):
            datasets.load(name, data_dir=tmp_path)


def test_medmnist_with_several_labels_a_sample(tmp_path):
    rng = np.random.default_rng(0)
    labels = {f"{part}_labels": rng.integers(0, 2, (size, 14)) for part, size in SIZES.items()}
    for name, side in (("chestmnist", 28), ("chestmnist_64", 64)):
        np.savez(tmp_path / f"{name}.npz", **medical((side, side), **labels))
        chest = datasets.load(name, data_dir=tmp_path)
        assert (chest.num_outputs, chest.num_native_test) == (14, 9)
        np.testing.assert_array_equal(
            chest.labelled(chest.targets), np.concatenate(list(labels.values()))
        )
    np.savez(tmp_path / "pathmnist.npz", **medical((28, 28, 3), **labels))
    with pytest.raises(DataError, match=r"pathmnist has 9 classes, got 14 labels, any number"):
        datasets.load("pathmnist", data_dir=tmp_path)
    np.savez(tmp_path / "chestmnist.npz", **medical((28, 28)))
    with pytest.raises(DataError, match=r"labels must be \(samples, 14\) of 0 and 1"):
        datasets.load("chestmnist", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test_images": None, "test_labels": None}, "lacks test_images, test_labels"),
        ({"val_labels": np.full((6, 1), 9)}, r"pathmnist\.npz, val_labels: labels must be 0 to 8"),
        ({"train_labels": np.zeros(12, dtype=int)}, r"train_labels must be \(samples, 1\)"),
        (
            {"val_images": np.zeros((6, 8, 8))},
            r"validation and test inputs must agree in shape, got \(28, 28, 3\) and \(8, 8\) and",
        ),
    ],
)
def test_medmnist_with_other_arrays(tmp_path, changes, message):
    np.savez(tmp_path / "pathmnist.npz", **medical((28, 28, 3), **changes))
    with pytest.raises(DataError, match=message):
        datasets.load("pathmnist", data_dir=tmp_path)


def test_samples_without_a_split(tmp_path, images):
    np.savez(tmp_path / "scenes.npz", x=images(6), y=np.arange(6) % 3, highest=255, good=np.ones(6))
    with pytest.warns(DataWarning, match=r"arrays that are not read: good; samples .* x, y \(test"):
        scenes = datasets.load("scenes", data_dir=tmp_path)
    assert (len(scenes), scenes.num_native_test) == (6, 0)
    assert "scenes" in {info.name for info in datasets.available(tmp_path)}


def test_an_archive_says_how_its_inputs_are_read(tmp_path):
    words, classes = np.random.default_rng(0).integers(1, 10_000, (6, 25)), np.arange(6) % 3
    np.savez(tmp_path / "words.npz", x_train=words, y_train=classes, scaled=False)
    np.testing.assert_array_equal(datasets.load("words", tmp_path).inputs, words)
    np.savez(tmp_path / "rows.npz", x=words[:, None] / 1e4, y=classes, channels="none", highest=2)
    rows = datasets.load("rows", tmp_path)
    assert rows.input_shape == (1, 25)
    np.testing.assert_allclose(rows.inputs[:, 0], words / 2e4, rtol=1e-6)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"highest": [1, 2]}, r"highest must be one number, got int64 \(2,\)"),
        ({"highest": True}, "highest must be one number, got bool"),
        ({"scaled": 0}, "scaled must be one truth value"),
        ({"channels": 1}, "channels must be one text"),
        ({"channels": "middle"}, "channels must be 'first', 'last' or 'none', got 'middle'"),
    ],
)
def test_an_option_of_another_kind_is_refused(tmp_path, option, message):
    np.savez(tmp_path / "own.npz", x=np.eye(4), y=np.arange(4), **option)
    with pytest.raises(DataError, match=message):
        datasets.load("own", tmp_path)


@pytest.mark.parametrize("option", [{"scale": False}, {"channel": "none"}])
def test_a_misspelt_option_is_an_array_that_is_not_read(tmp_path, option):
    np.savez(tmp_path / "own.npz", x=np.eye(4), y=np.arange(4), **option)
    message = rf"not read: {next(iter(option))}; .* options from highest, scaled, channels, and"
    with pytest.warns(DataWarning, match=message):
        datasets.load("own", tmp_path)


def test_how_inputs_are_read_may_be_said_in_place_of_the_archive(tmp_path):
    words, classes = np.random.default_rng(0).integers(1, 9, (6, 2, 5)), np.arange(6) % 3
    np.savez(tmp_path / "own.npz", x=words, y=classes, highest=9, channels="none")
    np.testing.assert_allclose(datasets.load("own", tmp_path).inputs * 9, words, rtol=1e-6)
    np.testing.assert_array_equal(datasets.load("own", tmp_path, scaled=False).inputs, words)
    np.savez(tmp_path / "own.npz", x=words, y=classes)
    with pytest.warns(UserWarning, match="whole numbers from 1 to 8") as told:
        datasets.load("own", tmp_path)
    assert [one.filename for one in told] == [__file__]


def of_images(arrays, change):
    return {
        key: change(array) if key.endswith("images") else array for key, array in arrays.items()
    }


def test_medical_images_of_your_own_have_the_usual_scale(tmp_path):
    arrays = medical((8, 8), 2)
    shares = of_images(arrays, lambda images: images / 255)
    bits = of_images(arrays, lambda images: images % 2)
    np.savez(tmp_path / "own.npz", **arrays)
    for name in ("floats", "pneumoniamnist"):
        np.savez(tmp_path / f"{name}.npz", **shares)
    np.savez(tmp_path / "bits.npz", **bits)
    own, *others = (
        datasets.load(name, tmp_path).inputs for name in ("own", "floats", "pneumoniamnist")
    )
    for inputs in others:
        np.testing.assert_allclose(inputs, own, atol=1e-6)
    assert datasets.load("bits", tmp_path).inputs.max() == 1


def test_medical_images_of_your_own_are_volumes_only_if_they_are_cubes(tmp_path):
    for shape, expected in (((6, 6, 6), (1, 6, 6, 6)), ((6, 6, 3), (3, 6, 6))):
        np.savez(tmp_path / "own.npz", **medical(shape))
        assert datasets.load("own", tmp_path).input_shape == expected
    np.savez(tmp_path / "own.npz", **medical((6, 5, 6)))
    with pytest.warns(DataWarning, match=r"channels first, which the sizes do not tell; set"):
        assert datasets.load("own", tmp_path).input_shape == (6, 5, 6)


@pytest.mark.parametrize("stated", [{}, {"channels": "first"}])
@pytest.mark.parametrize("brightest", [85, 16])
def test_dark_medical_images_are_divided_by_255_by_name_and_by_path(tmp_path, brightest, stated):
    dark = of_images(
        medical((28, 28), 2), lambda images: (images // 255 * brightest).astype(np.uint8)
    )
    for name in ("pneumoniamnist", "own"):
        np.savez(tmp_path / f"{name}.npz", **dark, **stated)
        found = datasets.load(name, tmp_path)
        np.testing.assert_allclose(found.inputs.max() * 255, brightest, rtol=1e-6)


def test_only_arrays_that_are_named_by_part_have_test_samples_in_x_test(tmp_path):
    np.savez(tmp_path / "own.npz", **medical((8, 8), 2), more=0)
    with pytest.warns(DataWarning, match=r"not read: more; .* test_images, test_labels, options"):
        datasets.load("own", tmp_path)


def test_arrays_beside_published_ones_are_told_if_they_may_be_samples(tmp_path, images):
    arrays = {"x_train": images(12), "y_train": np.arange(12) % 10, "id_train": np.arange(12)}
    np.savez(tmp_path / "mnist.npz", **arrays)
    assert len(datasets.load("mnist", tmp_path)) == 12
    np.savez(tmp_path / "mnist.npz", **arrays, X_test2=images(3))
    with pytest.warns(DataWarning, match=r"not read: X_test2; "):
        datasets.load("mnist", tmp_path)


def jpegs(colours):
    files = []
    for colour in colours:
        Image.new("RGB", (8, 6), colour).save(file := io.BytesIO(), "JPEG")
        files.append(file.getvalue())
    return files


def packed(files, is_train):
    return {
        "jpeg": np.frombuffer(b"".join(files), dtype=np.uint8),
        "offsets": np.cumsum([0, *map(len, files)]),
        "label": np.arange(len(files)) % 3,
        "is_train": is_train,
    }


def test_where_channels_are_does_not_change_the_scale_of_jpeg_images(tmp_path):
    arrays = packed(jpegs([(level, level, level) for level in (20, 40)]), np.ones(2, bool))
    for stated in ({}, {"channels": "first"}):
        np.savez(tmp_path / "own.npz", **arrays, **stated)
        found = datasets.load("own", tmp_path)
        np.testing.assert_allclose(found.inputs.max(axis=(1, 2, 3)) * 255, [20, 40], atol=2)


def test_images_as_jpeg(tmp_path):
    files = jpegs([(40 * number, 0, 255 - 40 * number) for number in range(6)])
    arrays = packed(files, np.array([True, False] + [True] * 4))
    np.savez(tmp_path / "own_jpeg.npz", **arrays)
    own = datasets.load("own_jpeg", data_dir=tmp_path)
    assert (own.input_shape, own.num_native_test) == ((3, 6, 8), 1)
    assert own.targets.tolist() == [0, 2, 0, 1, 2, 1]
    assert "JPEG" in own.source
    assert own.inputs[-1, 0].mean() * 255 == pytest.approx(40, abs=4)
    damaged = np.concatenate([arrays["jpeg"][: arrays["offsets"][-2]], np.zeros(9, np.uint8)])
    cut = [*arrays["offsets"][:-1], len(damaged)]
    np.savez(tmp_path / "own_jpeg.npz", **arrays | {"jpeg": damaged, "offsets": np.array(cut)})
    with pytest.raises(DataError, match=r"own_jpeg\.npz, image 5 cannot be read: it is no image"):
        datasets.load("own_jpeg", data_dir=tmp_path)
    np.savez(tmp_path / "own_jpeg.npz", **arrays | {"offsets": arrays["offsets"][1:]})
    with pytest.raises(DataError, match="offsets must be one more than label"):
        datasets.load("own_jpeg", data_dir=tmp_path)
