"""Data sets known by name: where their files are expected, and how to obtain them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from experiments.datasets.dataset import Dataset
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
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import is_file, seen
from experiments.datasets.formats.idx import emnist_stems, holds_idx, load_emnist
from experiments.datasets.formats.leaf import half_leaf, holds_leaf, load_leaf_vectors
from experiments.datasets.formats.npz import load_npz
from experiments.datasets.formats.recognition import load_path, readable
from experiments.datasets.formats.reviews import AMAZON, load_amazon, missing_reviews
from experiments.datasets.formats.tweets import SENTIMENT140


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


@dataclass(frozen=True)
class Published:
    """What a published data set of images holds.

    Attributes:
        samples: number of images.
        what: what they are.
        shape: height and width, then the number of channels or the depth.
        classes: number of classes, or of labels.
        label_sets: whether an image has any number of labels.
    """

    samples: int
    what: str
    shape: tuple[int, ...]
    classes: int
    label_sets: bool = field(default=False, kw_only=True)

    @property
    def description(self) -> str:
        """All of this in words."""
        kind = "labels" if self.label_sets else "classes"
        shape = "x".join(map(str, self.shape))
        return f"{self.samples:,} {self.what}, {shape}, {self.classes} {kind}"


GLOVE = "glove.6B.300d.txt"
IDX_FILES = "put its four IDX files (train-images-idx3-ubyte.gz, ...) into"
LEAF_FILES = "put the folders train and test of LEAF's preprocess.sh into DATA_DIR/{}/data"
REVIEW_PATHS = (
    "amazon-review",
    "sorted_data_acl",
    "processed_acl",
    *AMAZON,
)
REVIEW_HINT = (
    "put the folder sorted_data_acl or processed_acl of the Multi-Domain Sentiment Dataset 2.0 "
    "into DATA_DIR"
)
GREY, COLOURED, VOLUME = (28, 28), (28, 28, 3), (28, 28, 28)
"""Shapes of images."""
EMNIST = {
    "balanced": Published(131_600, "letters and digits", GREY, 47),
    "byclass": Published(814_255, "letters and digits", GREY, 62),
    "bymerge": Published(814_255, "letters and digits", GREY, 47),
    "digits": Published(280_000, "handwritten digits", GREY, 10),
    "letters": Published(145_600, "handwritten letters", GREY, 26),
    "mnist": Published(70_000, "handwritten digits", GREY, 10),
}
MEDMNIST = {
    "chestmnist": Published(112_120, "X-rays of chests", GREY, 14, label_sets=True),
    "pathmnist": Published(107_180, "images of colon tissue", COLOURED, 9),
    "dermamnist": Published(10_015, "images of skin", COLOURED, 7),
    "octmnist": Published(109_309, "scans of retinas", GREY, 4),
    "pneumoniamnist": Published(5_856, "X-rays of chests", GREY, 2),
    "retinamnist": Published(1_600, "photographs of retinas", COLOURED, 5),
    "breastmnist": Published(780, "ultrasound images of breasts", GREY, 2),
    "bloodmnist": Published(17_092, "images of blood cells", COLOURED, 8),
    "tissuemnist": Published(236_386, "images of kidney cells", GREY, 8),
    "organamnist": Published(58_830, "scans of organs (axial)", GREY, 11),
    "organcmnist": Published(23_583, "scans of organs (coronal)", GREY, 11),
    "organsmnist": Published(25_211, "scans of organs (sagittal)", GREY, 11),
    "organmnist3d": Published(1_742, "scans of organs", VOLUME, 11),
    "nodulemnist3d": Published(1_633, "scans of lungs", VOLUME, 2),
    "adrenalmnist3d": Published(1_584, "scans of adrenal glands", VOLUME, 2),
    "fracturemnist3d": Published(1_370, "scans of fractures", VOLUME, 3),
    "vesselmnist3d": Published(1_908, "models of blood vessels", VOLUME, 2),
    "synapsemnist3d": Published(1_759, "scans of synapses", VOLUME, 2),
}


def _published(published: Published, paths: tuple[str, ...], hint: str) -> KnownDataset:
    return KnownDataset(
        description=published.description,
        paths=paths,
        hint=hint,
        load=partial(load_path, num_classes=published.classes),
    )


def _emnist(split: str) -> KnownDataset:
    return KnownDataset(
        description=EMNIST[split].description,
        paths=("emnist", "EMNIST/raw", "emnist/gzip", "gzip", "."),
        hint=f"put emnist-{split}-train-images-idx3-ubyte.gz and its three siblings into "
        "DATA_DIR/emnist",
        holds=partial(holds_idx, stems=emnist_stems(split)),
        load=partial(load_emnist, split=split, num_classes=EMNIST[split].classes),
    )


def _medmnist(name: str, published: Published) -> KnownDataset:
    load = _load_labels if published.label_sets else load_path
    return KnownDataset(
        description=f"{published.description} (MedMNIST)",
        paths=(f"{name}.npz", f"medmnist/{name}.npz"),
        hint=f"put {name}.npz of MedMNIST into DATA_DIR",
        load=partial(load, num_classes=published.classes),
        incomplete=partial(_other_sizes, name.partition("_")[0]),
    )


def _enlarged(published: Published, side: int) -> Published:
    """The same with images of another height and width, and of volumes also depth."""
    return replace(published, shape=tuple(side if size == 28 else size for size in published.shape))


def _other_sizes(name: str, path: Path) -> str:
    """Names of the files beside a path that hold the same images in other sizes, in words."""
    found = sorted(
        other.stem
        for other in seen(path.parent)
        if other.name.startswith(name) and other.suffix == ".npz"
    )
    return f"{path.parent} has images of another size: {', '.join(found)}" if found else ""


def _load_labels(name: str, path: Path, num_classes: int) -> Dataset:
    """A data set with any of so many labels for each sample."""
    dataset = load_npz(name, path, num_classes)
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


def ends_with(folder: Path, path: str) -> bool:
    """Whether the last parts of a folder's path are those of a relative one."""
    parts = Path(path).parts
    return folder.parts[-len(parts) :] == parts


def _vector_places(folder: Path) -> list[Path]:
    """Where word vectors may be: in the folder of LEAF, beside it, and in the data directory."""
    above = [
        folder.parents[len(Path(path).parts) - 1]
        for path in SENT140_PATHS
        if ends_with(folder, path)
    ]
    return list(dict.fromkeys([folder, folder.parent, *above]))


def _vectors_of(folder: Path) -> Path | None:
    places = (place / GLOVE for place in _vector_places(folder))
    return next((path for path in places if is_file(path)), None)


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
    "fashion-mnist": _published(
        Published(70_000, "images of clothing", GREY, 10),
        ("fashion-mnist", "FashionMNIST/raw"),
        f"apt-get install dataset-fashion-mnist, or {IDX_FILES} DATA_DIR/fashion-mnist",
    ),
    "mnist": _published(
        Published(70_000, "handwritten digits", GREY, NUM_CLASSES),
        ("mnist", "MNIST/raw"),
        f"{IDX_FILES} DATA_DIR/mnist, or mnist.npz (x_train, y_train, ...) into DATA_DIR",
    ),
    **{f"emnist-{split}": _emnist(split) for split in EMNIST},
    "emnist-a-j": replace(
        _emnist("letters"),
        description="the letters a to j of EMNIST, 28x28, 10 classes",
        load=partial(load_emnist, split="letters", num_classes=EMNIST["letters"].classes, kept=10),
    ),
    "cifar-10": _published(
        Published(60_000, "photographs", (32, 32, 3), 10),
        ("cifar-10-batches-py", "cifar-10-batches-bin", "cifar-10", "cifar10.npz"),
        "put the folder cifar-10-batches-py or cifar-10-batches-bin into DATA_DIR",
    ),
    **{name: _medmnist(name, published) for name, published in MEDMNIST.items()},
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
        paths=SENTIMENT140,
        hint=f"put {SENTIMENT140[0]} into DATA_DIR",
    ),
}
SIZED = {
    f"{name}_{side}": _medmnist(f"{name}_{side}", _enlarged(published, side))
    for name, published in MEDMNIST.items()
    for side in ((64,) if published.shape == VOLUME else (64, 128, 224))
}
"""Larger images of MedMNIST, which are listed where they are available."""


def known_dataset(name: str) -> KnownDataset | None:
    """The data set of a name; None if it is unknown."""
    return KNOWN.get(name) or SIZED.get(name)
