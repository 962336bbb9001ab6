"""Folders of images by class."""

import errno
import pathlib
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from experiments import datasets
from experiments.datasets import DataError, DataWarning


def save(path, level, size=(6, 4), mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, level if mode == "L" else (level, 0, 255)).save(path)


def test_one_folder_for_each_class(tmp_path):
    for name, level in (("cat/1.png", 10), ("cat/2.png", 20), ("ant/1.png", 255)):
        save(tmp_path / "pets" / name, level)
    for pets in (datasets.from_folder(tmp_path / "pets"), datasets.load("pets", tmp_path)):
        assert (pets.name, pets.input_shape, pets.num_native_test) == ("pets", (1, 4, 6), 0)
        assert pets.targets.tolist() == [0, 1, 1]
        np.testing.assert_allclose(pets.inputs[:, 0, 0, 0] * 255, [255, 10, 20], atol=1e-4)


@pytest.mark.parametrize(
    ("folders", "classes"),
    [
        (["10", "9", "2"], ("2", "9", "10")),
        (["01", "1", "0"], ("0", "01", "1")),
        (["10", "9", "x"], ("10", "9", "x")),
    ],
)
def test_folders_that_are_numbers_are_classes_in_the_order_of_numbers(tmp_path, folders, classes):
    for level, name in enumerate(folders):
        save(tmp_path / name / "1.png", 51 * (level + 3))
    found = datasets.from_folder(tmp_path)
    assert found.class_names == classes
    levels = {name: 51 * (level + 3) / 255 for level, name in enumerate(folders)}
    expected = [levels[name] for name in classes]
    np.testing.assert_allclose(found.inputs[:, 0, 0, 0], expected, rtol=1e-6)


def test_train_and_test_folders_and_colours(tmp_path):
    for part in ("train", "test"):
        save(tmp_path / part / "a" / "1.png", 128, mode="RGB")
        save(tmp_path / part / "b" / "1.png", 255)
    found = datasets.from_folder(tmp_path, name="own")
    assert (found.name, found.num_native_test, found.input_shape) == ("own", 2, (3, 4, 6))
    np.testing.assert_allclose(found.inputs[0, :, 0, 0] * 255, [128, 0, 255], atol=1e-4)
    save(tmp_path / "test" / "c" / "1.png", 1)
    with pytest.raises(DataError, match=r"classes that .*train lacks: c"):
        datasets.from_folder(tmp_path)


def test_validation_images_are_training_samples_beside_a_test_set(tmp_path):
    for part, level in (("train", 10), ("val", 20)):
        save(tmp_path / part / "a" / "1.png", level)
        save(tmp_path / part / "b" / "1.png", 255)
    assert datasets.from_folder(tmp_path).num_native_test == 2
    for number in (1, 2):
        save(tmp_path / "test" / "a" / f"{number}.png", 30)
        save(tmp_path / "test" / "b" / f"{number}.png", 30)
    found = datasets.from_folder(tmp_path)
    assert (len(found), found.num_native_test) == (8, 4)
    np.testing.assert_allclose(found.inputs[:4, 0, 0, 0] * 255, [10, 255, 20, 255], atol=1e-4)
    save(tmp_path / "val" / "c" / "1.png", 1)
    with pytest.raises(DataError, match=r"val has classes that .*train lacks: c"):
        datasets.from_folder(tmp_path)


def test_sizes_differ(tmp_path):
    save(tmp_path / "a" / "1.png", 255)
    save(tmp_path / "b" / "1.png", 255, size=(9, 9))
    with pytest.raises(
        DataError, match=r"must agree in size.*from_folder a size \(a scenario names"
    ):
        datasets.from_folder(tmp_path)
    assert datasets.from_folder(tmp_path, size=(5, 7)).input_shape == (1, 5, 7)


@pytest.mark.parametrize("size", [5, (0, 5), (5.5, 5), (5, 5, 3), (True, 5)])
def test_a_size_that_is_none_is_named_before_images_are_read(tmp_path, size):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"size must be height and width, two whole numbers, got"):
        datasets.from_folder(tmp_path, size=size)


def test_folders_that_are_none_are_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere does not exist"):
        datasets.from_folder(tmp_path / "nowhere")
    with pytest.raises(TypeError, match=r"folder must be a path, got None"):
        datasets.from_folder(None)


def save_all(folder, *files):
    for file in files:
        save(folder / file, 255)


def test_a_class_that_is_called_train(tmp_path):
    save_all(tmp_path, "bus/1.png", "car/1.png", "train/1.png")
    for load in (datasets.from_folder, datasets.load):
        assert load(tmp_path).num_classes == 3


@pytest.mark.parametrize("kept", ["", "train/", "test/"])
def test_parts_without_folders_of_classes_are_named(tmp_path, kept):
    save_all(tmp_path, *(f"{part}{'a/' * (part == kept)}1.png" for part in ("train/", "test/")))
    message = {"train/": r"test must hold one subfolder of images for each class"}
    with pytest.raises(DataError, match=message.get(kept, r"by class, in its folders of training")):
        datasets.from_folder(tmp_path)


@pytest.mark.parametrize("pair", [("train", "training"), ("test", "testing"), ("val", "valid")])
def test_two_folders_for_one_part_are_refused(tmp_path, pair):
    save_all(tmp_path, "train/a/1.png", *(f"{part}/a/2.png" for part in pair))
    with pytest.raises(DataError, match=r"one folder for each part, got {} and {}".format(*pair)):
        datasets.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["extra/a/1.png", "val/1.png"], r"2 images not read \(1 in extra/a, 1 in val\)"),
        (["1.png", "train/a/b/1.png"], r"2 images not read \(1 in \., 1 in train/a/b\)"),
        (["train/a/1.heic"], r"1 image not read \(1 in train/a\), .* not of the kinds \.png"),
        (["train/c/list.txt"], r"no image for the classes c$"),
    ],
)
def test_images_and_classes_that_are_not_read_are_counted(tmp_path, more, message):
    save_all(tmp_path, "train/a/1.png", "train/b/1.png", "test/a/1.png")
    for file in more:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    with pytest.warns(DataWarning, match=message):
        assert len(datasets.from_folder(tmp_path)) == 3


def test_suffixes_of_images_are_read_in_any_case(tmp_path):
    save_all(tmp_path, "a/1.webp", "b/1.PNG")
    assert datasets.from_folder(tmp_path).num_classes == 2


def save_pixels(folder, *images, suffix="png"):
    for number, pixels in enumerate(images):
        path = folder / "ab"[number % 2] / f"{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)


def test_images_of_16_bits_are_divided_by_their_highest_value(tmp_path):
    deep = np.random.default_rng(0).integers(0, 65_536, (2, 6, 5)).astype(np.uint16)
    save_pixels(tmp_path, *deep)
    found = datasets.from_folder(tmp_path)
    np.testing.assert_allclose(found.inputs[:, 0], deep / 65535, atol=1e-7)
    kept = datasets.from_folder(tmp_path, scaled=False)
    np.testing.assert_array_equal(kept.inputs[:, 0], deep)


def test_images_of_16_bits_are_resized_as_floating_point_numbers(tmp_path):
    deep = np.random.default_rng(0).integers(0, 65_536, (2, 6, 5)).astype(np.uint16)
    save_pixels(tmp_path / "deep", *deep)
    save_pixels(tmp_path / "floats", *(deep / np.float32(65535)), suffix="tif")
    small = datasets.from_folder(tmp_path / "deep", size=(3, 4), highest=65535)
    same = datasets.from_folder(tmp_path / "floats", size=(3, 4))
    np.testing.assert_allclose(small.inputs, same.inputs, atol=1e-5)


def test_images_of_12_bits_are_scaled_by_their_range_with_a_warning(tmp_path):
    deep = np.linspace(0, 4095, 60).astype(np.uint16).reshape(2, 6, 5)
    save_pixels(tmp_path, *deep)
    with pytest.warns(DataWarning, match=r"16-bit inputs end at 4095 .* highest=65535 if .*4095"):
        found = datasets.from_folder(tmp_path)
    np.testing.assert_allclose(found.inputs[:, 0], deep / 4095, atol=1e-7)
    save_pixels(tmp_path, np.full((6, 5), 255, np.uint8))
    with pytest.warns(DataWarning, match=r"16-bit images, beside others .* divided by 65535"):
        assert datasets.from_folder(tmp_path).inputs[0].max() == 1


def test_floating_point_images_and_bytes_beside_them(tmp_path):
    numbers = np.random.default_rng(0).random((2, 6, 5)).astype(np.float32)
    save_pixels(tmp_path / "train", *numbers, suffix="tif")
    save_pixels(tmp_path / "test", *(numbers * 255).astype(np.uint8))
    found = datasets.from_folder(tmp_path)
    assert (found.input_shape, found.num_native_test) == ((1, 6, 5), 2)
    np.testing.assert_array_equal(found.inputs[:2, 0], numbers)
    np.testing.assert_allclose(found.inputs[2:, 0] * 255, (numbers * 255).astype(int), atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (np.float32, r"floating-point numbers .* 0 to 1, got 0 to 14\.7\d+; set highest=NUMBER"),
        (np.int32, r"signed whole numbers in images must be from 0 to 1, got 0 to 14; set highest"),
    ],
)
def test_pixels_without_a_known_scale_are_refused_unless_it_is_given(tmp_path, kind, message):
    numbers = np.linspace(0, 30, 60).astype(kind).reshape(2, 6, 5)
    save_pixels(tmp_path / "scans", *numbers, suffix="tif")
    read = (datasets.from_folder, datasets.load)
    for load in read:
        with pytest.raises(DataError, match=message):
            load(tmp_path / "scans", highest=None, scaled=True)
        found = load(tmp_path / "scans", highest=30)
        np.testing.assert_allclose(found.inputs[:, 0], numbers / 30, rtol=1e-6)
        np.testing.assert_array_equal(load(tmp_path / "scans", scaled=False).inputs[:, 0], numbers)


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp"])
@pytest.mark.parametrize("high", [17, 60, 209, 255])
def test_images_of_8_bits_are_divided_by_255_however_dark(tmp_path, suffix, high):
    save_pixels(tmp_path, *np.full((2, 6, 5), high, dtype=np.uint8), suffix=suffix)
    for load in (datasets.from_folder, datasets.load):
        assert (load(tmp_path).inputs == np.float32(high) / np.float32(255)).all()
        assert load(tmp_path, highest=high).inputs.max() == 1
    numbers = np.zeros((6, 5), np.float32)
    save_pixels(tmp_path / "a", numbers, suffix="tif")
    (tmp_path / "a" / "a" / "0.tif").rename(tmp_path / "a" / "2.tif")
    (tmp_path / "a" / "a").rmdir()
    assert datasets.from_folder(tmp_path).inputs.max() == np.float32(high) / np.float32(255)


@pytest.mark.parametrize("high", [1, 16])
def test_masks_in_images_of_8_bits_are_scaled_by_their_range(tmp_path, high):
    save_pixels(tmp_path, *(np.eye(6, 5, dtype=np.uint8) * high for _ in "ab"))
    found = datasets.from_folder(tmp_path).inputs
    assert (found[:, 0] == np.eye(6, 5)).all()


def test_grey_images_beside_a_test_set_in_colours(tmp_path):
    for part, mode in (("train", "L"), ("test", "RGB")):
        for name in "ab":
            save(tmp_path / part / name / "1.png", 255, mode=mode)
    assert datasets.from_folder(tmp_path).input_shape == (3, 4, 6)


def test_hidden_files_are_left_out(tmp_path):
    save_pixels(tmp_path, *np.full((2, 6, 5), 255, np.uint8))
    for file in ("a/._0.png", "__MACOSX/a/._0.png", "__MACOSX/1.png", ".ipynb_checkpoints/1.png"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"of another system")
    assert len(datasets.from_folder(tmp_path)) == 2


def test_images_of_which_only_a_part_would_be_read_are_named(tmp_path):
    pages = [Image.new("L", (6, 4), level) for level in (10, 20)]
    save(tmp_path / "b" / "1.png", 10)
    (tmp_path / "a").mkdir()
    pages[0].save(tmp_path / "a" / "1.tif", save_all=True, append_images=pages[1:])
    with pytest.raises(DataError, match=r"1\.tif cannot be read: it holds 2 images; save each"):
        datasets.from_folder(tmp_path)
    (tmp_path / "a" / "1.tif").unlink()
    (tmp_path / "a" / "1.ppm").write_bytes(b"P6 3 2 4095\n" + bytes(36))
    with pytest.raises(DataError, match=r"1\.ppm cannot be read: it has 16 bits in each channel"):
        datasets.load(tmp_path, highest=4095)


def test_no_images(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(DataError, match=r"one subfolder of images for each .* \.png, \.jpg"):
        datasets.from_folder(tmp_path)
    save(tmp_path / "b" / "1.png", 10)
    (tmp_path / "a" / "1.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"1\.png cannot be read: it is no image"):
        datasets.from_folder(tmp_path)


def test_one_folder_of_images_is_told_to_be_one_class(tmp_path):
    save_all(tmp_path, "images/1.png", "images/2.png")
    with pytest.warns(DataWarning, match=r"one class alone, images, as the folders of images"):
        assert datasets.from_folder(tmp_path).num_classes == 1


def test_folders_of_sites_become_domains_as_is_told(tmp_path):
    save_all(tmp_path, *(f"{site}/{name}/1.png" for site in ("north", "south") for name in "ab"))
    for load in (datasets.from_folder, datasets.load):
        with pytest.raises(DataError, match=r"its folders north, south hold such") as told:
            load(tmp_path)
    known = {"datasets": datasets, "pathlib": pathlib, "name": "all"}
    made, listed = re.findall("`([^`]*)`", str(told.value))
    exec(listed, known)
    found = eval(made, known)
    assert (sorted(found.domain_names), found.class_names) == (["north", "south"], ("a", "b"))
    with pytest.raises(DataError, match=r"\.webp$"):
        datasets.from_folder(tmp_path / "north" / "a")


def test_samples_of_dev_are_those_of_validation(tmp_path):
    save_all(tmp_path, *(f"{part}/{name}/1.png" for part in ("train", "dev") for name in "ab"))
    assert datasets.from_folder(tmp_path).num_native_test == 2


@pytest.mark.parametrize("other", ["val", "valid", "Validation"])
def test_samples_of_dev_are_not_read_beside_others_of_validation(tmp_path, other):
    parts = ("train", "Dev", other, "test")
    save_all(tmp_path, *(f"{part}/{name}/1.png" for part in parts for name in "ab"))
    with pytest.warns(DataWarning, match=r"1 in Dev/b\), outside the folders of classes that are"):
        found = datasets.from_folder(tmp_path)
    assert (len(found), found.num_native_test) == (6, 2)


def test_images_that_are_not_read_are_counted_in_folders_that_are_links(tmp_path):
    save_all(tmp_path / "elsewhere", "1.png", "more/1.png")
    save_all(tmp_path / "pets", "a/1.png")
    (tmp_path / "pets" / "b").symlink_to(tmp_path / "elsewhere")
    with pytest.warns(DataWarning, match=r"1 image not read \(1 in b/more\)"):
        assert len(datasets.from_folder(tmp_path / "pets")) == 2


@pytest.mark.parametrize("folder", [".", "./", "inner/.."])
def test_the_working_directory_has_its_name(tmp_path, monkeypatch, folder):
    save_all(tmp_path / "pets", "a/1.png", "b/1.png", "inner/1.png")
    monkeypatch.chdir(tmp_path / "pets")
    assert datasets.from_folder(folder).name == "pets"
    if folder != ".":
        assert datasets.load(folder).name == "pets"


def test_where_channels_are_is_no_option_of_folders(tmp_path):
    save_all(tmp_path, "a/1.png", "b/1.png")
    with pytest.raises(DataError, match=r"'channels' is none of the options highest, scaled"):
        datasets.from_folder(tmp_path, channels="last")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_are_turned_as_viewers_show_them(tmp_path, orientation):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6), dtype=np.uint8)
    exif = Image.Exif()
    exif[274] = orientation
    image = Image.fromarray(pixels)
    for name in "ab":
        (tmp_path / name).mkdir()
        image.save(tmp_path / name / "1.png", exif=exif)
        image.save(tmp_path / name / "2.tif", exif=exif)
    with Image.open(tmp_path / "a" / "1.png") as stored:
        shown = np.asarray(ImageOps.exif_transpose(stored))
    for found in datasets.from_folder(tmp_path).inputs:
        np.testing.assert_allclose(found[0] * 255, shown, atol=1e-4)


def test_photographs_that_differ_in_size_once_they_are_turned(tmp_path):
    exif = Image.Exif()
    for name, orientation in (("a", 1), ("b", 6)):
        (tmp_path / name).mkdir()
        exif[274] = orientation
        Image.new("L", (6, 4)).save(tmp_path / name / "1.jpg", exif=exif)
    with pytest.raises(DataError, match=r"\(4, 6\), \(6, 4\).* turned as their EXIF data say;"):
        datasets.from_folder(tmp_path)
    assert len(datasets.from_folder(tmp_path, size=(4, 4))) == 2


def test_damaged_exif_data_leave_an_image_as_it_is_stored(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6), dtype=np.uint8)
    for name in "ab":
        (tmp_path / name).mkdir()
        Image.fromarray(pixels).save(tmp_path / name / "1.png", exif=b"Exif\x00\x00no data")
    assert datasets.from_folder(tmp_path).input_shape == (1, 4, 6)


@pytest.mark.parametrize("unreadable", ["pets/a", "pets/train/a"])
def test_a_folder_that_cannot_be_read_is_named(tmp_path, monkeypatch, unreadable):
    for name in "ab":
        save(tmp_path / unreadable / ".." / name / "1.png", 255)
    listed = Path.iterdir

    def iterdir(path):
        if path == tmp_path / unreadable:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    for load in (datasets.from_folder, datasets.load):
        with pytest.raises(DataError, match=r"/a cannot be read: Permission denied$"):
            load(tmp_path / "pets")
    assert "pets" in {info.name for info in datasets.available(tmp_path)}
