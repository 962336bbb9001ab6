"""Data sets by name: search path, suggestions, listing, and the real ones."""

import gzip
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from experiments import datasets
from experiments.datasets import DataError
from experiments.datasets.built_in import BUILT_IN
from experiments.datasets.known import KNOWN

DEBIAN = Path("/usr/share/datasets/fashion-mnist")

REAL = os.environ.get("BCFL_DATA", "")

BARE = io.BytesIO()
np.save(BARE, np.arange(3))


def test_optdigits_are_images_in_the_unit_interval():
    digits = datasets.load("optdigits")
    assert digits.inputs.shape == (1797, 1, 8, 8)
    assert digits.inputs.dtype == np.float32
    assert digits.inputs.min() == 0
    assert digits.inputs.max() == 1
    # First image of the UCI test file: the second row of its zero is 0 0 13 15 10 15 5 0.
    np.testing.assert_array_equal(digits.inputs[0, 0, 1] * 16, [0, 0, 13, 15, 10, 15, 5, 0])
    assert digits.targets[:10].tolist() == list(range(10))
    assert repr(digits) == (
        "Dataset(optdigits: 1797 samples of (1, 8, 8), 10 classes, 0 of them native test)"
    )


def test_how_values_are_scaled_is_for_files_of_your_own(tmp_path, write_npz, write_idx):
    write_npz(tmp_path / "mnist.npz")
    (tmp_path / "reviews.tsv").write_text("0\tgood\n")
    for name in ("optdigits", "mnist", "module:samples", tmp_path / "reviews.tsv"):
        with pytest.raises(DataError, match="highest and scaled are for an "):
            datasets.load(name, tmp_path, highest=255)
    for name in ("optdigits", "nowhere", write_npz(tmp_path / "own.npz")):
        with pytest.raises(DataError, match=r"'scale' is none of .*Did you mean 'scaled'\?"):
            datasets.load(name, scale=False)
        with pytest.raises(DataError, match="'channels' is none of the options highest, scaled"):
            datasets.load(name, channels="last")
    own = datasets.load(write_idx(tmp_path / "own"), highest=510)
    assert own.inputs.max() < 0.51


def test_data_dir_comes_before_the_variable_and_the_system_folder(tmp_path, monkeypatch, write_npz):
    places = [tmp_path / "given", tmp_path / "variable", tmp_path / "system"]
    for place in places:
        write_npz(place / "own.npz")
    monkeypatch.setenv("BCFL_DATA", str(places[1]))
    assert str(places[0]) in datasets.load("own", data_dir=places[0]).source
    assert str(places[1]) in datasets.load("own").source
    monkeypatch.setenv("BCFL_DATA", str(tmp_path / "nowhere"))
    assert str(places[2]) in datasets.load("own").source


def test_fashion_mnist_in_the_folder_of_debian_and_of_torchvision(tmp_path, write_idx):
    write_idx(tmp_path / "FashionMNIST" / "raw")
    assert "raw" in datasets.load("fashion-mnist", data_dir=tmp_path).source
    write_idx(tmp_path / "system" / "fashion-mnist")
    assert "system" in datasets.load("fashion-mnist").source


def test_idx_files_in_the_data_directory_itself_are_not_taken_for_any_name(tmp_path, write_idx):
    folder = write_idx(tmp_path / "files")
    with pytest.raises(DataError, match="give its path as name"):
        datasets.load("mnist", data_dir=folder)
    assert len(datasets.load(folder)) == 18
    for own in ("fashion-mnist", "FashionMNIST/raw"):
        assert len(datasets.load("fashion-mnist", data_dir=write_idx(tmp_path / own))) == 18


def test_missing_data_name_the_searched_directories_and_how_to_obtain_them(tmp_path, monkeypatch):
    monkeypatch.setenv("BCFL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError) as caught:
        datasets.load("fashion-mnist", data_dir=tmp_path)
    message = str(caught.value)
    assert f"{tmp_path}, {tmp_path / 'nowhere'} (does not exist)" in message
    assert "apt-get install dataset-fashion-mnist" in message
    assert "BCFL_DATA" in message


@pytest.mark.parametrize(
    ("wrong", "meant"), [("optdigit", "optdigits"), ("fashion_mnist", "fashion-mnist")]
)
def test_a_misspelt_name_gets_the_nearest(wrong, meant):
    with pytest.raises(DataError, match=f"{wrong}.* Did you mean '{meant}'"):
        datasets.load(wrong)


def test_local_names_are_suggested_too(tmp_path, write_npz):
    write_npz(tmp_path / "weather.npz")
    with pytest.raises(DataError, match="Did you mean 'weather'"):
        datasets.load("wether", data_dir=tmp_path)


@pytest.mark.parametrize("name", ["optdigits", "mnist"])
def test_a_data_directory_that_does_not_exist(tmp_path, name):
    with pytest.raises(DataError, match=r"data_dir must be an existing directory, got .*nowhere"):
        datasets.load(name, data_dir=tmp_path / "nowhere")
    with pytest.raises(DataError, match="data_dir"):
        datasets.available(data_dir=tmp_path / "nowhere")


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match=r"gone\.npz does not exist"):
        datasets.load(tmp_path / "gone.npz")


def test_a_path_that_is_nearly_there_is_named(tmp_path, write_npz, monkeypatch):
    write_npz(tmp_path / "plants" / "flowers.npz")
    (tmp_path / "flowers").mkdir()
    for wrong, place, meant in (
        ("flowrs", "", "flowers"),
        ("plant/flowers.npz", "plant", "plants"),
        ("plants/flower.npz", "", "plants/flowers.npz"),
    ):
        inner = f", as there is no {tmp_path / place}" * bool(place)
        hint = re.escape(f"does not exist{inner}. Did you mean '{tmp_path / meant}'?")
        for load in (datasets.load, datasets.from_folder):
            with pytest.raises(DataError, match=rf"{re.escape(wrong)} {hint}$"):
                load(tmp_path / wrong)
    with pytest.raises(DataError, match=r"zzz does not exist$"):
        datasets.load(tmp_path / "zzz")
    monkeypatch.chdir(tmp_path / "plants")
    with pytest.raises(DataError, match=r"Did you mean '\./flowers\.npz'"):
        datasets.load("./flowrs.npz")
    assert len(datasets.load("./flowers.npz")) == 18


def test_available_lists_known_and_local_data(tmp_path, write_idx, write_npz):
    write_npz(tmp_path / "weather.npz")
    write_npz(tmp_path / "not_samples.npz", x_train=None)
    write_idx(tmp_path / "letters")
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    (tmp_path / "bare.npz").write_bytes(BARE.getvalue())
    infos = {info.name: info for info in datasets.available(data_dir=tmp_path)}
    assert list(infos) == sorted({*KNOWN, *BUILT_IN, "letters", "weather"})
    assert {name for name, info in infos.items() if info.found} == {
        "letters",
        "optdigits",
        "rendered-digits",
        "weather",
    }
    assert "apt-get install dataset-fashion-mnist" in infos["fashion-mnist"].where
    for name in ("letters", "weather"):
        assert datasets.load(name, data_dir=tmp_path).source.endswith(infos[name].where)


def test_listing_and_importing_do_not_import_scikit_learn():
    code = (
        "import sys; from experiments import datasets, partitions, models;"
        "from bcfl.analysis import metrics;"
        "datasets.available(); print('sklearn' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


@pytest.mark.skipif(not DEBIAN.is_dir(), reason=f"dataset-fashion-mnist is not in {DEBIAN}")
def test_real_fashion_mnist(images):
    fashion = datasets.load(DEBIAN)
    assert fashion.inputs.shape == (70000, 1, 28, 28)
    assert np.bincount(fashion.targets).tolist() == [7000] * 10
    assert fashion.targets[:5].tolist() == [9, 0, 0, 3, 0]
    # Published mean and deviation of the training images.
    assert fashion.inputs[:60000].mean() == pytest.approx(0.2860, abs=1e-4)
    assert fashion.inputs[:60000].std() == pytest.approx(0.3530, abs=1e-4)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_what_is_missing_is_named_with_where_it_goes(tmp_path, name):
    with pytest.raises(DataError) as caught:
        datasets.load(name, data_dir=tmp_path)
    assert KNOWN[name].hint in str(caught.value)
    assert "DATA_DIR" in KNOWN[name].hint
    assert str(tmp_path) in str(caught.value)


@pytest.mark.skipif(not (REAL and Path(REAL).is_dir()), reason="BCFL_DATA is no folder")
def test_all_real_data_are_listed_by_name():
    files = {
        path.name.partition(".")[0]
        for path in Path(REAL).iterdir()
        if path.name.endswith((".npz", ".gz", ".zip")) and "writers" not in path.name
    }
    found = {info.name for info in datasets.available(REAL) if info.found}
    assert files <= found


@pytest.mark.skipif(
    not (REAL and (Path(REAL) / "usps.npz").is_file()), reason="BCFL_DATA has no usps.npz"
)
def test_real_usps():
    usps = datasets.load("usps", data_dir=REAL)
    assert usps.inputs.shape == (9298, 1, 16, 16)
    assert usps.num_native_test == 2007


def test_a_folder_or_file_in_the_working_directory_is_told_with_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures" / "a").mkdir(parents=True)
    (tmp_path / "pictures" / "a" / "1.png").touch()
    (tmp_path / "table.mat").touch()
    with pytest.raises(DataError, match=r"the folder pictures in .* by its path: \./pictures \(in"):
        datasets.load("pictures")
    with pytest.raises(DataError, match=r"the file table\.mat in .* by its path: \./table\.mat "):
        datasets.load("table")


@pytest.mark.parametrize("ending", [".npz", ".mat", ".MAT", ".tsv", ".tsv.gz", ".jsonl"])
def test_a_file_with_its_ending_is_a_path(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    path = Path(f"own{ending}")
    text = '{"domain": "dvd", "label": 1, "text": "good film"}' if "json" in ending else "1\tgood"
    if ending == ".npz":
        np.savez(path, x=np.eye(2), y=[0, 1])
    elif ending.lower() == ".mat":
        savemat(path, {"X": np.eye(2), "y": [0, 1]}, appendmat=False)
    else:
        path.write_bytes(gzip.compress(text.encode()) if "gz" in ending else text.encode())
    assert datasets.load(str(path)).name == "own"
    assert datasets.load(str(path), tmp_path).name == "own"
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    with pytest.raises(DataError, match=r"does not exist|was not found"):
        datasets.load(str(path))


def test_what_is_not_read_is_told_in_place_of_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").touch()
    (tmp_path / "empty").mkdir()
    said = {"data.csv": r"data\.csv is of no known format", "empty": r"empty holds no known format"}
    for name, message in said.items():
        for place in (None, tmp_path):
            with pytest.raises(DataError, match=rf"{message}; give .* module:function$"):
                datasets.load(name, place)


@pytest.mark.parametrize("name", [".", ".."])
def test_the_names_of_the_working_directory_and_of_that_above_are_no_names(tmp_path, name):
    with pytest.raises(DataError, match=rf"or a path, got '{name}'; .* by its path {name}/$"):
        datasets.load(name, tmp_path)


@pytest.mark.parametrize("name", ["a" * 5000, f"/{'a' * 5000}", "a\0b", "/a\0b"])
def test_a_name_that_no_file_can_have(tmp_path, name):
    with pytest.raises(DataError, match=r"was not found|File name too long|does not exist"):
        datasets.load(name, tmp_path)


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_what_cannot_be_looked_at_is_left_out_of_lists(tmp_path, write_npz, kind):
    write_npz(tmp_path / "own.npz")
    path = tmp_path / "other" / "train" / "x.json"
    path.parent.mkdir(parents=True)
    path.mkdir() if kind == "folder" else path.symlink_to(tmp_path / "nowhere")
    found = {info.name for info in datasets.available(tmp_path) if info.found}
    assert "own" in found
    assert "other" not in found
    with pytest.raises(DataError, match="Did you mean 'own'"):
        datasets.load("owm", tmp_path)


def test_a_list_names_what_is_read(tmp_path):
    for name in ("mnist.mat", "reviews.TSV"):
        (tmp_path / name).touch()
    found = {info.name for info in datasets.available(tmp_path) if info.found}
    assert "mnist" not in found  # a published set is not in a file of that name
    with pytest.raises(
        DataError, match=r"mnist\.mat is none of its files; .* by its path\. Searched"
    ):
        datasets.load("mnist", tmp_path)
    assert "reviews" in found


def test_an_empty_name(tmp_path, write_npz):
    write_npz(tmp_path / "own.npz")
    with pytest.raises(DataError, match=r"name must be that of a data set, or a path, got ''"):
        datasets.load("", data_dir=tmp_path)


def test_what_cannot_be_read_is_said_of_files_and_folders(tmp_path, write_npz):
    for name in "ab":
        write_npz(tmp_path / "two" / f"{name}.npz")
    (tmp_path / "cut.zip").write_bytes(b"PK")
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        archive.writestr("a/1.png", b"")
    (tmp_path / "table.csv").touch()
    said = {
        "two": r"holds 2 \.npz files, of which the path of one",
        "cut.zip": r"is a damaged archive without images of Omniglot",
        "own.zip": r"is an archive without images of Omniglot",
        "table.csv": r"is of no known format",
    }
    for name, message in said.items():
        with pytest.raises(DataError, match=message):
            datasets.load(tmp_path / name)
