"""Omniglot: drawings in folders and archives, and images beside them."""

import zipfile

import numpy as np
import pytest
from PIL import Image

from experiments import datasets
from experiments.datasets import DataError, DataWarning


def save(path, level, size=(6, 4), mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, level if mode == "L" else (level, 0, 0)).save(path)


@pytest.fixture
def omniglot(tmp_path):
    folder = tmp_path / "images_background"
    for alphabet, characters in (("Greek", 2), ("Latin", 1)):
        for character in range(1, characters + 1):
            for drawer in (1, 2):
                path = folder / alphabet / f"character{character:02}" / f"0001_{drawer:02}.png"
                save(path, 255 if drawer == 1 else 0, size=(105, 105))
    return folder


def test_omniglot_from_a_zip_file_and_a_folder(tmp_path, omniglot):
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for path in omniglot.rglob("*.png"):
            archive.write(path, path.relative_to(tmp_path))
    for name in ("images_background", "packed"):
        found = datasets.load(name, tmp_path)
        assert (found.input_shape, found.num_classes) == ((1, 28, 28), 3)
        assert found.targets.tolist() == [0, 0, 1, 1, 2, 2]
        assert found.writers.tolist() == [0, 1, 0, 1, 2, 3]
        assert found.domains.tolist() == [0, 0, 0, 0, 1, 1]
        assert found.domain_names == ("Greek", "Latin")
        assert found.inputs[:, 0, 9, 9].tolist() == [0, 1] * 3
    assert {"images_background", "packed"} <= {info.name for info in datasets.available(tmp_path)}


def test_both_parts_of_omniglot_are_read_as_one_folder(tmp_path, omniglot):
    save(tmp_path / "images_evaluation" / "Tengwar" / "character01" / "0002_01.png", 0, (105, 105))
    found = datasets.load(tmp_path)
    assert (len(found), found.domain_names) == (7, ("Greek", "Latin", "Tengwar"))
    save(tmp_path / "images_small" / "Greek" / "character01" / "0001_01.png", 0, (105, 105))
    with pytest.raises(DataError, match=r"drawing Greek/character01/0001_01\.png in several fold"):
        datasets.load(tmp_path)


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("RGB", r"character02, drawer 1 must be .* without colours"),
        (None, "drawer 1 cannot be read"),
    ],
)
def test_drawings_that_are_not_of_omniglot_are_named(omniglot, mode, message):
    path = omniglot / "Greek" / "character02" / "0001_01.png"
    path.write_bytes(b"no image")
    if mode:
        save(path, 255, size=(105, 105), mode=mode)
    with pytest.raises(DataError, match=message):
        datasets.load(omniglot)


def test_classes_that_are_called_like_characters_are_no_omniglot(tmp_path):
    for part in ("train", "test"):
        for name in ("character1", "character2"):
            for file in ("img_0.png", "img_1.png", "scan.png", "0001_01.png"):
                save(tmp_path / part / name / file, 240)
    found = datasets.load(tmp_path)
    assert (found.num_native_test, found.num_classes, found.input_shape) == (8, 2, (1, 4, 6))
    assert found.inputs.max() == np.float32(240 / 255)
    assert found.domains is None


@pytest.mark.parametrize(
    "more", ["Greek/character01/0101_01_rot90.png", "Greek/map.jpg", "preview.png"]
)
def test_images_beside_drawings_of_omniglot_are_left_out_with_a_warning(tmp_path, omniglot, more):
    drawn = datasets.load(omniglot)
    save(omniglot / more, 255)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for path in omniglot.rglob("*.*"):
            archive.write(path, path.relative_to(omniglot))
    for path in (omniglot, tmp_path / "packed.zip"):
        with pytest.warns(
            DataWarning, match=rf"6 drawings .* and 1 other image \({more}\), which"
        ) as told:
            found = datasets.load(path)
        assert len(told) == 1
        np.testing.assert_array_equal(found.inputs, drawn.inputs)
        np.testing.assert_array_equal(found.writers, drawn.writers)


def test_drawings_of_omniglot_among_as_many_other_images_are_refused(omniglot):
    for number in range(6):
        save(omniglot / "Greek" / "character01" / f"scan_{number}.png", 255)
    message = r"6 drawings .* 6 other images \(Greek/character01/scan_0\.png, \.\.\.\); leave"
    with pytest.raises(DataError, match=message):
        datasets.load(omniglot)


def test_alphabets_of_omniglot_may_be_symbolic_links(tmp_path, omniglot):
    linked = tmp_path / "linked"
    linked.mkdir()
    for alphabet in ("Greek", "Latin"):
        (linked / alphabet).symlink_to(omniglot / alphabet)
    (omniglot / "Greek" / "again").symlink_to(linked)
    found = datasets.load(linked)
    assert (len(found), found.domain_names) == (6, ("Greek", "Latin"))


def test_drawers_of_omniglot_may_have_one_digit(omniglot):
    drawn = datasets.load(omniglot)
    for path in list(omniglot.rglob("*.png")):
        path.rename(path.with_name(path.name.replace("_0", "_")))
    found = datasets.load(omniglot)
    np.testing.assert_array_equal(found.inputs, drawn.inputs)
    np.testing.assert_array_equal(found.writers, drawn.writers)
