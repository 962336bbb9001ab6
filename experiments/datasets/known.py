"""Data sets known by name: where their files are expected, and how to obtain them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.datasets.dataset import DataError, Dataset
from experiments.datasets.digits import (
    DIGITS,
    NUM_CLASSES,
    SCENE_DIGITS,
    holds_digits,
    holds_like,
    load_digits_five,
    load_like,
    missing_digits,
    too_few_digits,
)
from experiments.datasets.formats import load_path, readable
from experiments.datasets.idx import emnist_stems, holds_idx, load_emnist
from experiments.datasets.leaf import half_leaf, holds_leaf, load_leaf_vectors
from experiments.datasets.texts import load_amazon, missing_reviews


@dataclass(frozen=True, kw_only=True)
class KnownDataset:
    """A data set known by name.

    Attributes:
        description: short description.
        paths: possible files and folders below a data directory; `.` is the directory itself.
        hint: how to obtain it.
        holds: whether a path holds it.
        load: reads it, from its name and the path.
        incomplete: what a path lacks of it, in words, where it holds too little to be read.
        lacks: domains that a path does not hold.
    """

    description: str
    paths: tuple[str, ...]
    hint: str
    holds: Callable[[Path], bool] = lambda path: readable(path) is not None
    load: Callable[[str, Path], Dataset] = load_path
    incomplete: Callable[[Path], str] = lambda _: ""
    lacks: Callable[[Path], tuple[str, ...]] = lambda _: ()


GLOVE = "glove.6B.300d.txt"
IDX_FILES = "put its four IDX files (train-images-idx3-ubyte.gz, ...) into"
LEAF_FILES = "put the folders train and test of LEAF's preprocess.sh into DATA_DIR/{}/data"
REVIEW_PATHS = (
    "amazon-review",
    "sorted_data_acl",
    "processed_acl",
    "amazon-review.jsonl.gz",
    "amazon_reviews_4domains.jsonl.gz",
)
REVIEW_HINT = (
    "put the folder sorted_data_acl or processed_acl of the Multi-Domain Sentiment Dataset 2.0 "
    "into DATA_DIR"
)
EMNIST_SPLITS = {
    "balanced": "131,600 letters and digits, 28x28, 47 classes",
    "byclass": "814,255 letters and digits, 28x28, 62 classes",
    "bymerge": "814,255 letters and digits, 28x28, 47 classes",
    "digits": "280,000 handwritten digits, 28x28, 10 classes",
    "letters": "145,600 handwritten letters, 28x28, 26 classes",
    "mnist": "70,000 handwritten digits, 28x28, 10 classes",
}
MEDMNIST = {
    "chestmnist": "112,120 X-rays of chests, 28x28, 14 labels",
    "pathmnist": "107,180 images of colon tissue, 28x28x3, 9 classes",
    "dermamnist": "10,015 images of skin, 28x28x3, 7 classes",
    "octmnist": "109,309 scans of retinas, 28x28, 4 classes",
    "pneumoniamnist": "5,856 X-rays of chests, 28x28, 2 classes",
    "retinamnist": "1,600 photographs of retinas, 28x28x3, 5 classes",
    "breastmnist": "780 ultrasound images of breasts, 28x28, 2 classes",
    "bloodmnist": "17,092 images of blood cells, 28x28x3, 8 classes",
    "tissuemnist": "236,386 images of kidney cells, 28x28, 8 classes",
    "organamnist": "58,830 scans of organs (axial), 28x28, 11 classes",
    "organcmnist": "23,583 scans of organs (coronal), 28x28, 11 classes",
    "organsmnist": "25,211 scans of organs (sagittal), 28x28, 11 classes",
    "organmnist3d": "1,742 scans of organs, 28x28x28, 11 classes",
    "nodulemnist3d": "1,633 scans of lungs, 28x28x28, 2 classes",
    "adrenalmnist3d": "1,584 scans of adrenal glands, 28x28x28, 2 classes",
    "fracturemnist3d": "1,370 scans of fractures, 28x28x28, 3 classes",
    "vesselmnist3d": "1,908 models of blood vessels, 28x28x28, 2 classes",
    "synapsemnist3d": "1,759 scans of synapses, 28x28x28, 2 classes",
}


def _emnist(split: str, description: str, classes: int | None = None) -> KnownDataset:
    return KnownDataset(
        description=description,
        paths=("emnist", "EMNIST/raw", "emnist/gzip", "gzip"),
        hint=f"put emnist-{split}-train-images-idx3-ubyte.gz and its three siblings into "
        "DATA_DIR/emnist",
        holds=partial(holds_idx, stems=emnist_stems(split)),
        load=partial(load_emnist, split=split, classes=classes),
    )


def _medmnist(name: str, description: str) -> KnownDataset:
    count, kind = description.split()[-2:]
    return KnownDataset(
        description=f"{description} (MedMNIST)",
        paths=(f"{name}.npz", f"medmnist/{name}.npz"),
        hint=f"put {name}.npz of MedMNIST into DATA_DIR",
        load=partial(_load_labels if kind == "labels" else load_path, num_classes=int(count)),
    )


def _load_labels(name: str, path: Path, num_classes: int) -> Dataset:
    """A data set with any of so many labels for each sample."""
    dataset = load_path(name, path)
    if dataset.label_sets is None or dataset.num_outputs != num_classes:
        raise DataError(
            f"{path}: labels must be (samples, {num_classes}) of 0 and 1, got "
            f"{dataset.num_outputs} {'classes' if dataset.label_sets is None else 'labels'}"
        )
    return dataset


def _digits(name: str) -> KnownDataset:
    domain = DIGITS[name]
    more = {
        "svhn": ", with its test file,",
        "usps": ", or usps.bz2 and usps.t.bz2 of LIBSVM,",
    }
    return KnownDataset(
        description=f"{domain.description}, 10 classes",
        paths=tuple(f"{folder}{path}" for folder in ("", *DIGIT_FOLDERS) for path in domain.paths),
        hint=f"put {' or '.join(domain.paths[:2])}{more.get(name, '')} into DATA_DIR",
        load=partial(load_path, num_classes=NUM_CLASSES),
    )


def _vector_places(folder: Path) -> list[Path]:
    """Where word vectors may be: in the folder of LEAF, beside it, and in the data directory."""
    above = [
        folder.parents[len(Path(path).parts) - 1]
        for path in SENT140_PATHS
        if folder.parts[-len(Path(path).parts) :] == Path(path).parts
    ]
    return list(dict.fromkeys([folder, folder.parent, *above]))


def _vectors_of(folder: Path) -> Path | None:
    places = (place / GLOVE for place in _vector_places(folder))
    return next((path for path in places if path.is_file()), None)


def _without_vectors(folder: Path) -> str:
    if not holds_leaf(folder):
        return half_leaf(folder)
    if _vectors_of(folder) is not None:
        return ""
    places = _vector_places(folder)
    return f"{folder} is there, but {GLOVE} is not in {' nor in '.join(map(str, places))}"


def _load_vectors(name: str, folder: Path) -> Dataset:
    vectors = _vectors_of(folder)
    if vectors is None:
        raise DataError(_without_vectors(folder))
    return load_leaf_vectors(name, folder, vectors)


DIGIT_FOLDERS = ("digits-five/", "Digit-Five/", "Digits-Five/", "DigitFive/")
SENT140_PATHS = ("sent140", "leaf/data/sent140", "data/sent140")
KNOWN: Mapping[str, KnownDataset] = {
    "fashion-mnist": KnownDataset(
        description="70,000 images of clothing, 28x28, 10 classes",
        paths=("fashion-mnist", "FashionMNIST/raw"),
        hint=f"apt-get install dataset-fashion-mnist, or {IDX_FILES} DATA_DIR/fashion-mnist",
        load=partial(load_path, num_classes=10),
    ),
    "mnist": KnownDataset(
        description="70,000 handwritten digits, 28x28, 10 classes",
        paths=("mnist", "MNIST/raw"),
        hint=f"{IDX_FILES} DATA_DIR/mnist, or mnist.npz (x_train, y_train, ...) into DATA_DIR",
        load=partial(load_path, num_classes=10),
    ),
    **{f"emnist-{split}": _emnist(split, text) for split, text in EMNIST_SPLITS.items()},
    "emnist-a-j": _emnist("letters", "the letters a to j of EMNIST, 28x28, 10 classes", 10),
    "cifar-10": KnownDataset(
        description="60,000 photographs, 32x32x3, 10 classes",
        paths=("cifar-10-batches-py", "cifar-10-batches-bin", "cifar-10", "cifar10.npz"),
        hint="put the folder cifar-10-batches-py or cifar-10-batches-bin into DATA_DIR",
        load=partial(load_path, num_classes=10),
    ),
    **{name: _medmnist(name, text) for name, text in MEDMNIST.items()},
    **{name: _digits(name) for name in DIGITS if name != "mnist"},
    "digits-five": KnownDataset(
        description="digits of five domains as far as they are there, 28x28x3, 10 classes",
        paths=(*DIGIT_FOLDERS, "."),
        hint="put " + ", ".join(domain.paths[0] for domain in DIGITS.values()) + ", or at least "
        "two of them, into DATA_DIR/digits-five",
        holds=holds_digits,
        load=load_digits_five,
        incomplete=too_few_digits,
        lacks=missing_digits,
    ),
    "digits-five-like": KnownDataset(
        description="digits of five domains, two of them stand-ins, 28x28x3, 10 classes",
        paths=(*DIGIT_FOLDERS, "."),
        hint=f"put MNIST, MNIST-M, USPS and {SCENE_DIGITS} into DATA_DIR",
        holds=holds_like,
        load=load_like,
    ),
    "amazon-review": KnownDataset(
        description="8,000 reviews of four domains as 5,000 TF-IDF terms, 2 classes",
        paths=REVIEW_PATHS,
        hint=REVIEW_HINT,
        load=load_amazon,
        lacks=missing_reviews,
    ),
    "amazon-review-hashed": KnownDataset(
        description="8,000 reviews of four domains as 5,000 hashed terms, 2 classes",
        paths=REVIEW_PATHS,
        hint=REVIEW_HINT,
        load=partial(load_amazon, features="hashed"),
        lacks=missing_reviews,
    ),
    "femnist": KnownDataset(
        description="letters and digits by writer (LEAF), 28x28, 62 classes",
        paths=("femnist", "leaf/data/femnist", "data/femnist"),
        hint=LEAF_FILES.format("femnist"),
        holds=holds_leaf,
        incomplete=half_leaf,
    ),
    "sent140": KnownDataset(
        description="tweets by user (LEAF) as 25 word numbers, 2 classes",
        paths=SENT140_PATHS,
        hint=LEAF_FILES.format("sent140"),
        holds=holds_leaf,
        incomplete=half_leaf,
    ),
    "sent140-glove": KnownDataset(
        description="tweets by user (LEAF) as 25 word vectors of 300 numbers, 2 classes",
        paths=SENT140_PATHS,
        hint=f"{LEAF_FILES.format('sent140')}, and {GLOVE} into DATA_DIR",
        holds=lambda path: holds_leaf(path) and _vectors_of(path) is not None,
        load=_load_vectors,
        incomplete=_without_vectors,
    ),
    "sentiment140": KnownDataset(
        description="tweets as 25 word numbers, 2 classes",
        paths=("training.1600000.processed.noemoticon.csv", "sentiment140_100k.tsv.gz"),
        hint="put training.1600000.processed.noemoticon.csv into DATA_DIR",
    ),
}
SIDES = {True: (64,), False: (64, 128, 224)}
"""Heights and widths of larger images of MedMNIST, of three dimensions or two."""
SIZED = {
    f"{name}_{side}": _medmnist(
        f"{name}_{side}", text.replace("x28", f"x{side}").replace(" 28x", f" {side}x")
    )
    for name, text in MEDMNIST.items()
    for side in SIDES[name.endswith("3d")]
}
"""Larger images of MedMNIST, which are listed where they are available."""


def known_dataset(name: str) -> KnownDataset | None:
    """The data set of a name; None if it is unknown."""
    return KNOWN.get(name) or SIZED.get(name)
