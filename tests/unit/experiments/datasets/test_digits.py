"""Digits-Five: MATLAB files and folders as published, domains that are not there, stand-ins."""

import bz2
import warnings
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from experiments import datasets
from experiments.datasets import DataError

TRAIN, TEST = 20, 10


def pixels(count, *shape, seed=0):
    images = np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)
    images[0].flat[:2] = 0, 255
    return images


def labels(count):
    return np.arange(count) % 10


def one_hot(count):
    return np.eye(10)[labels(count)]


def write_mnist(folder):
    arrays = {"train_28": pixels(TRAIN, 28, 28, 1), "test_28": pixels(TEST, 28, 28, 1)}
    arrays |= {"train_32": pixels(TRAIN, 32, 32), "test_32": pixels(TEST, 32, 32)}
    arrays |= {"label_train": one_hot(TRAIN), "label_test": one_hot(TEST)}
    savemat(folder / "mnist_data.mat", arrays)


def write_mnist_m(folder):
    arrays = {"train": pixels(TRAIN, 28, 28, 3), "test": pixels(TEST, 28, 28, 3)}
    arrays |= {"label_train": one_hot(TRAIN), "label_test": one_hot(TEST)}
    savemat(folder / "mnistm_with_label.mat", arrays)


def write_usps(folder):
    table = np.empty((2, 2), dtype=object)
    for row, count in enumerate((TRAIN, TEST)):
        table[row, 0] = pixels(count, 1, 28, 28) / 255
        table[row, 1] = labels(count)[:, None].astype(np.uint8)
    savemat(folder / "usps_28x28.mat", {"dataset": table})


def write_svhn(folder):
    for part, count in (("train", TRAIN), ("test", TEST)):
        numbers = np.where(labels(count) == 0, 10, labels(count))[:, None]
        images = np.moveaxis(pixels(count, 32, 32, 3), 0, 3)
        savemat(folder / f"svhn_{part}_32x32.mat", {"X": images, "y": numbers.astype(np.uint8)})


def write_synthetic(folder):
    arrays = {"train_data": pixels(TRAIN, 32, 32, 3), "test_data": pixels(TEST, 32, 32, 3)}
    arrays |= {"train_label": labels(TRAIN)[:, None], "test_label": labels(TEST)[:, None]}
    savemat(folder / "syn_number.mat", arrays)


WRITERS = {
    "mnist": (write_mnist, (1, 28, 28)),
    "mnist-m": (write_mnist_m, (3, 28, 28)),
    "usps": (write_usps, (1, 28, 28)),
    "svhn": (write_svhn, (3, 32, 32)),
    "synthetic-digits": (write_synthetic, (3, 32, 32)),
}


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "mnist"])
def test_each_domain_by_its_own_name(tmp_path, name):
    write, shape = WRITERS[name]
    write(tmp_path)
    domain = datasets.load(name, data_dir=tmp_path)
    assert (domain.input_shape, domain.num_native_test) == (shape, TEST)
    assert domain.targets.tolist() == [*labels(TRAIN), *labels(TEST)]
    stored = pixels(TRAIN, *shape) if shape[0] == 1 else pixels(TRAIN, *shape[1:], 3)
    shown = stored if shape[0] == 1 else np.moveaxis(stored, 3, 1)
    np.testing.assert_allclose(domain.inputs[:TRAIN] * 255, shown, atol=1e-3)


def test_digits_five_joins_all_domains(tmp_path):
    folder = tmp_path / "digits-five"
    folder.mkdir()
    for write, _ in WRITERS.values():
        write(folder)
    digits = datasets.load("digits-five", data_dir=tmp_path)
    assert digits.input_shape == (3, 28, 28)
    assert digits.domain_names == tuple(WRITERS)
    assert np.bincount(digits.domains).tolist() == [TRAIN + TEST] * 5
    assert digits.num_native_test == 5 * TEST
    assert np.bincount(digits.domains[-5 * TEST :]).tolist() == [TEST] * 5
    grey = digits.inputs[digits.domains == 0]
    assert (grey == grey[:, :1]).all()
    # Averages hardly change where 32 x 32 pixels become 28 x 28.
    svhn = datasets.load("svhn", data_dir=tmp_path)
    small = digits.inputs[digits.domains == 3]
    np.testing.assert_allclose(small.mean(), svhn.inputs.mean(), atol=5e-3)


def test_domains_that_are_not_there_are_named(tmp_path):
    write_usps(tmp_path)
    with pytest.raises(DataError, match="'digits-five' was not found"):
        datasets.load("digits-five", data_dir=tmp_path)
    write_mnist_m(tmp_path)
    with pytest.warns(UserWarning, match=r"lacks the domains mnist \(mnist_data.mat\), svhn"):
        digits = datasets.load("digits-five", data_dir=tmp_path)
    assert digits.domain_names == ("mnist-m", "usps")
    assert "not here: mnist, svhn, synthetic-digits" in digits.source
    for write in (write_mnist, write_svhn):
        write(tmp_path)
    with pytest.warns(UserWarning, match=r"lacks the domain synthetic-digits \(syn_number.mat\)$"):
        datasets.load("digits-five", data_dir=tmp_path)


def test_a_single_domain_is_told(tmp_path):
    write_usps(tmp_path)
    with pytest.raises(DataError, match=r"has only usps and lacks the domains mnist \(mnist_data"):
        datasets.load("digits-five", data_dir=tmp_path)


@pytest.mark.parametrize("name", ["svhn", "digits-five"])
def test_svhn_without_its_test_file(tmp_path, name):
    write_svhn(tmp_path)
    write_usps(tmp_path)
    (tmp_path / "svhn_test_32x32.mat").unlink()
    with (
        pytest.raises(DataError, match=r"lacks the test file svhn_test_32x32\.mat beside"),
        warnings.catch_warnings(action="ignore"),
    ):
        datasets.load(name, data_dir=tmp_path)


@pytest.mark.parametrize("part", ["train", "test"])
def test_labels_that_are_no_digits(tmp_path, part):
    images = np.moveaxis(pixels(TRAIN, 32, 32, 3), 0, 3)
    write_svhn(tmp_path)
    arrays = {"X": images, "y": np.arange(TRAIN)[:, None] % 11 + 1}
    savemat(tmp_path / f"svhn_{part}_32x32.mat", arrays)
    with pytest.raises(DataError, match=rf"svhn_{part}_.*: labels must be 0 to 9, got 11"):
        datasets.load("svhn", data_dir=tmp_path)


def test_usps_as_libsvm_publishes_it(tmp_path):
    images = pixels(TRAIN, 256) / 127.5 - 1
    for name, count in (("usps.bz2", TRAIN), ("usps.t.bz2", TEST)):
        rows = [
            f"{label + 1} " + " ".join(f"{place}:{x:.6f}" for place, x in enumerate(image, start=1))
            for label, image in zip(labels(count), images, strict=False)
        ]
        (tmp_path / name).write_bytes(bz2.compress("\n".join(rows).encode()))
    usps = datasets.load("usps", data_dir=tmp_path)
    assert (usps.input_shape, usps.num_native_test) == ((1, 16, 16), TEST)
    assert usps.targets.tolist() == [*labels(TRAIN), *labels(TEST)]
    np.testing.assert_allclose(usps.inputs[:TRAIN].reshape(TRAIN, -1), (images + 1) / 2, atol=1e-5)
    (tmp_path / "usps.bz2").rename(tmp_path / "other.bz2")
    with pytest.raises(DataError, match=r"other\.bz2 is of no known format"):
        datasets.load(tmp_path / "other.bz2")
    (tmp_path / "other.bz2").rename(tmp_path / "usps.bz2")
    (tmp_path / "usps.t.bz2").unlink()
    with pytest.raises(DataError, match=r"lacks usps\.t\.bz2"):
        datasets.load("usps", data_dir=tmp_path)


def test_mnist_m_as_folders_with_lists_of_labels(tmp_path):
    folder = tmp_path / "mnist_m"
    for part, count in (("train", TRAIN), ("test", TEST)):
        (folder / f"mnist_m_{part}").mkdir(parents=True)
        lines = []
        for number, image in enumerate(pixels(count, 32, 32, 3)):
            Image.fromarray(image).save(folder / f"mnist_m_{part}" / f"{number:08}.png")
            lines.append(f"{number:08}.png {labels(count)[number]}")
        (folder / f"mnist_m_{part}_labels.txt").write_text("\n".join(lines))
    found = datasets.load("mnist-m", data_dir=tmp_path)
    assert (len(found), found.num_native_test, found.input_shape) == (30, TEST, (3, 32, 32))
    stored = np.moveaxis(pixels(TRAIN, 32, 32, 3), 3, 1)
    np.testing.assert_allclose(found.inputs[:TRAIN] * 255, stored, atol=1e-3)
    (folder / "mnist_m_test" / "00000003.png").unlink()
    with pytest.raises(
        DataError, match=r"00000003\.png cannot be read: No such file or directory$"
    ):
        datasets.load("mnist-m", data_dir=tmp_path)
    (folder / "mnist_m_test_labels.txt").write_bytes(b"\xff.png 3\n")
    with pytest.raises(DataError, match=r"mnist_m_test_labels\.txt cannot be read: 'utf-8'"):
        datasets.load("mnist-m", data_dir=tmp_path)


def test_stand_ins_have_a_name_of_their_own(tmp_path):
    for name in ("mnist", "mnist-m", "usps"):
        WRITERS[name][0](tmp_path)
    scenes = {"x": pixels(TRAIN, 32, 32, 3), "y": labels(TRAIN)}
    np.savez(tmp_path / "chars74k_scene_digits_32.npz", **scenes)
    like = datasets.load("digits-five-like", data_dir=tmp_path)
    assert like.domain_names[3:] == ("scene-digits", "rendered-digits")
    assert "stand-ins" in like.source
    with pytest.warns(UserWarning, match="svhn"):
        digits = datasets.load("digits-five", data_dir=tmp_path)
    assert digits.domain_names == ("mnist", "mnist-m", "usps")


def test_the_list_says_which_domains_are_not_there(tmp_path):
    for name, (write, _) in WRITERS.items():
        if name != "svhn":
            write(tmp_path)
    listed = {info.name: info for info in datasets.available(tmp_path)}
    digits = listed["digits-five"]
    assert (digits.found, digits.lacks) == (True, ("svhn",))
    assert digits.gap == "domain svhn of digits-five"
    write_svhn(tmp_path)
    listed = {info.name: info for info in datasets.available(tmp_path)}
    assert (listed["digits-five"].lacks, listed["digits-five"].gap) == ((), "")
    assert listed["tissuemnist"].gap == "tissuemnist"


def own(labels, **changes):
    inputs = np.linspace(0, 1, 2 * len(labels)).reshape(-1, 2)
    return replace(datasets.from_numpy(inputs, labels), **changes)


def test_joined_domains_keep_writers_and_sets_of_labels():
    first = own(np.array([[0, 1], [1, 1], [0, 0]]), writers=np.array([7, 5, 7]), num_native_test=1)
    other = own(np.array([[1, 0], [1, 1]]), writers=np.array([7, 7]))
    both = datasets.joined("both", {"a": first, "b": other})
    rows = [[0, 1], [1, 1], [1, 0], [1, 1], [0, 0]]
    assert both.labelled(both.targets).tolist() == rows
    assert (both.num_outputs, both.num_classes, both.num_native_test) == (2, 4, 1)
    assert both.writers.tolist() == [1, 0, 2, 2, 1]
    assert both.domains.tolist() == [0, 0, 1, 1, 0]
    assert both.writer_names == (), "one part has numbers alone"


@pytest.mark.parametrize(
    ("others", "names"),
    [("cad", ("b", "e", "a", "c", "d")), ("bed", ("1 b", "1 e", "2 b", "2 d", "2 e"))],
)
def test_names_of_writers_tell_those_of_several_domains_apart(others, names):
    parts = [own([0, 1, 0], writers=[*"ebe"]), own([0, 1, 0], writers=[*others])]
    both = datasets.joined("both", dict(zip("12", parts, strict=True)))
    assert both.writer_names == names
    assert [names[number][-1] for number in both.writers] == [*"ebe", *others]


def test_data_sets_that_cannot_be_joined():
    plain = own(np.arange(4) % 2)
    wrote = replace(plain, writers=np.arange(4))
    inner = datasets.joined("inner", {"x": plain, "y": plain})
    refused = {
        r"a mapping from names to data sets, at least one, got a list": [plain, plain],
        r"at least one, got none": {},
        r"writers, or none, got none of b; dataclasses\.replace": {"a": wrote, "b": plain},
        r"domain 'a' has domains of its own, x, y; join these": {"a": inner, "b": plain},
        r"agree in input shape and number of classes or labels, got a: inputs": {
            "a": plain,
            "b": own(np.array([[0, 1], [1, 1]])),
        },
    }
    for message, parts in refused.items():
        with pytest.raises(DataError, match=message):
            datasets.joined("j", parts)
