"""Digits-Five: MNIST, MNIST-M, USPS, SVHN and synthetic digits, from files as published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bcfl.runtime import warn_of_data
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError, domains_in_words
from experiments.datasets.formats.files import is_file
from experiments.datasets.formats.images import resized
from experiments.datasets.formats.recognition import load_path, readable
from experiments.datasets.joining import joined

SIZE = (28, 28)
"""Height and width of all images of Digits-Five."""
NUM_CLASSES = 10
LEAST_DOMAINS = 2


@dataclass(frozen=True)
class Domain:
    """One domain of Digits-Five.

    Attributes:
        description: short description.
        paths: possible files and folders below a data directory.
    """

    description: str
    paths: tuple[str, ...]


DIGITS: Mapping[str, Domain] = {
    "mnist": Domain(
        "handwritten digits, 28x28", ("mnist_data.mat", "mnist.npz", "mnist", "MNIST/raw")
    ),
    "mnist-m": Domain(
        "MNIST blended with photographs, 28x28x3",
        ("mnistm_with_label.mat", "mnist-m.npz", "mnist_m.npz", "mnist_m", "mnistm_12k.npz"),
    ),
    "usps": Domain(
        "digits of envelopes, 16x16 or 28x28", ("usps_28x28.mat", "usps.npz", "usps", "usps.bz2")
    ),
    "svhn": Domain(
        "street view house numbers, 32x32x3",
        ("svhn_train_32x32.mat", "train_32x32.mat", "svhn/train_32x32.mat", "svhn.npz", "svhn"),
    ),
    "synthetic-digits": Domain(
        "digits rendered from fonts, 32x32x3",
        ("syn_number.mat", "synth_train_32x32.mat", "synthetic-digits.npz", "synthetic-digits"),
    ),
}
SCENE_DIGITS = "chars74k_scene_digits_32.npz"


def domain_path(domain: str, folder: Path) -> Path | None:
    """File or folder of a domain below a data directory; None if it is not there."""
    paths = (folder / path for path in DIGITS[domain].paths)
    return next((path for path in paths if readable(path) is not None), None)


def missing_digits(folder: Path) -> tuple[str, ...]:
    """Names of the domains of Digits-Five that are not below a folder."""
    return tuple(domain for domain in DIGITS if domain_path(domain, folder) is None)


def holds_digits(folder: Path) -> bool:
    """Whether at least two of the domains of Digits-Five are below a folder."""
    return len(DIGITS) - len(missing_digits(folder)) >= LEAST_DOMAINS


def too_few_digits(folder: Path) -> str:
    """What is missing below a folder with a single domain of Digits-Five, in words."""
    missing = missing_digits(folder)
    if len(missing) != len(DIGITS) - 1:
        return ""
    (found,) = set(DIGITS) - set(missing)
    return f"{folder} has only {found} and {_lacking(missing)}"


def load_digits_five(name: str, folder: Path) -> Dataset:
    """Load the domains of Digits-Five (Peng et al., 2019) that are there, as (3, 28, 28) images.

    Warns of the domains that are not. MNIST-M is made of the images of MNIST: in their own files
    no training image of one has its twin among the test images of the other, but partitions pool
    these parts and split them again unless they have `native_test`.

    Args:
        name: name of the data set.
        folder: folder of the files; see `DIGITS`.

    Raises:
        DataError: a file is corrupt.
    """
    paths = {domain: domain_path(domain, folder) for domain in DIGITS}
    missing = missing_digits(folder)
    if missing:
        warn_of_data(f"dataset {name!r}: {folder} {_lacking(missing)}")
    parts = {
        domain: load_path(domain, path, NUM_CLASSES)
        for domain, path in paths.items()
        if path is not None
    }
    whole = joined(name, {domain: _coloured(part) for domain, part in parts.items()})
    note = f"; not here: {', '.join(missing)}" if missing else ""
    return replace(whole, source=f"{', '.join(parts)} in {folder}{note}")


def holds_like(folder: Path) -> bool:
    """Whether MNIST, MNIST-M, USPS and digits of street scenes are below a folder."""
    domains = ("mnist", "mnist-m", "usps")
    return is_file(folder / SCENE_DIGITS) and all(domain_path(one, folder) for one in domains)


def load_like(name: str, folder: Path) -> Dataset:
    """Load stand-ins for Digits-Five: digits of street scenes for SVHN, rendered digits.

    On twins in MNIST and MNIST-M see `load_digits_five`.

    Args:
        name: name of the data set.
        folder: folder of the files of MNIST, MNIST-M, USPS and Chars74K.

    Raises:
        DataError: a file is corrupt.
    """
    from experiments.datasets.rendered import rendered_digits

    parts = {
        one: load_path(one, _required_path(one, folder), NUM_CLASSES)
        for one in ("mnist", "mnist-m", "usps")
    }
    parts["scene-digits"] = load_path("scene-digits", folder / SCENE_DIGITS, NUM_CLASSES)
    parts["rendered-digits"] = rendered_digits()
    whole = joined(name, {domain: _coloured(part) for domain, part in parts.items()})
    return replace(whole, source=f"stand-ins for Digits-Five in {folder}: {', '.join(parts)}")


def _lacking(domains: Sequence[str]) -> str:
    expected = [f"{domain} ({DIGITS[domain].paths[0]})" for domain in domains]
    return f"lacks the {domains_in_words(expected)}"


def _coloured(part: Dataset) -> Dataset:
    """Images of three channels and 28 x 28 pixels, without writers, which one domain has."""
    inputs = resized(part.inputs, SIZE)
    return replace(part, inputs=np.repeat(inputs, 3 // inputs.shape[1], axis=1), writers=None)


def _required_path(domain: str, folder: Path) -> Path:
    path = domain_path(domain, folder)
    if path is None:
        raise DataError(f"{folder} lacks {' or '.join(DIGITS[domain].paths)}")
    return path
