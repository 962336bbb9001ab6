"""Loader of reviews of several domains, as TF-IDF or hashed terms."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import warn_of_data
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError, domains_in_words
from experiments.datasets.formats.files import (
    ending_of,
    folders_in,
    is_file,
    is_folder,
    seen,
    text_of,
)
from experiments.datasets.formats.tweets import sentiment

Features = Literal["tf-idf", "hashed"]
TERMS = 5000
"""Features of a review."""
OPENING = "<review_text>"
REVIEW = re.compile(OPENING + r"(.*?)</review_text>", re.DOTALL)
DOMAINS = ("books", "dvd", "electronics", "kitchen")
LABELS = {"negative": 0, "positive": 1}
ENDINGS = (".jsonl", ".jsonl.gz")
AMAZON = ("amazon-review.jsonl.gz", "amazon_reviews_4domains.jsonl.gz")
"""Files of AmazonReview, which hold more than is read."""


@dataclass(frozen=True)
class _Review:
    domain: str
    text: str
    label: int


def holds_reviews(path: Path) -> bool:
    """Whether a path is a file of reviews, `.jsonl` or `.jsonl.gz`, or a folder of domains."""
    if is_file(path):
        return ending_of(path.name, ENDINGS) != ""
    return any(is_file(path / domain / "positive.review") for domain in DOMAINS)


def missing_reviews(path: Path) -> tuple[str, ...]:
    """Domains of AmazonReview that a file or folder of reviews lacks."""
    if is_folder(path):
        held = [inner.name for inner in seen(path) if is_folder(inner)]
    elif holds_reviews(path):
        held = sorted({review.domain for review in _of_lines(path)})
    else:
        return ()
    return _absent(held)


def _absent(held: Collection[str]) -> tuple[str, ...]:
    """Domains that are not held; names only begin like theirs in some editions.

    Such a name is `kitchen_&_housewares`.
    """
    return tuple(one for one in DOMAINS if not any(name.startswith(one) for name in held))


def load_reviews(name: str, path: Path, features: Features = "tf-idf") -> Dataset:
    """Load reviews of several domains with two classes (Blitzer et al., 2007).

    Args:
        name: name of the data set.
        path: a file with a JSON object of `domain`, `label` (0 or 1) and `text` in each line (a
            warning names other keys); or the published folder with `DOMAIN/positive.review` and
            `DOMAIN/negative.review`, as text or as counts of terms.
        features: `tf-idf` of the 5,000 most frequent terms, or all terms `hashed` to 5,000 numbers;
            both are scaled to a mean square of 1 in each review. With rows of norm 1, as
            TF-IDF is often given, SGD from PyTorch's initial weights learns nothing in 400 steps at
            the learning rate of the BCFL paper.

    Raises:
        DataError: a file is missing or corrupt.
    """
    reviews = list(_of_lines(path) if is_file(path) else _of_folders(path))
    if not reviews:
        raise DataError(f"{path} holds no reviews")
    try:
        inputs = _terms([review.text for review in reviews], features)
    except ValueError as error:  # of scikit-learn, where no text has a word
        raise DataError(f"{path}: reviews must have words of two letters or more") from error
    return Dataset(
        name=name,
        inputs=inputs,
        targets=np.array([review.label for review in reviews], dtype=np.int64),
        num_classes=len(LABELS),
        source=f"{features} terms of {path}",
        domains=np.array([review.domain for review in reviews]),
    )


def load_amazon(name: str, path: Path, features: Features = "tf-idf") -> Dataset:
    """Load the reviews of the four domains of AmazonReview; warns of those that are not there.

    Args:
        name: name of the data set.
        path: see `load_reviews`.
        features: see `load_reviews`.

    Raises:
        DataError: a file is missing or corrupt.
    """
    reviews = load_reviews(name, path, features)
    missing = _absent(reviews.domain_names)
    if not missing:
        return reviews
    warn_of_data(f"dataset {name!r}: {path} lacks the {domains_in_words(missing)}")
    return replace(reviews, source=f"{reviews.source}; not here: {', '.join(missing)}")


def _terms(texts: Sequence[str], features: Features) -> NDArray[np.float32]:
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

    if features == "hashed":
        vectorizer = HashingVectorizer(n_features=TERMS, alternate_sign=False, dtype=np.float32)
    else:
        vectorizer = TfidfVectorizer(max_features=TERMS, dtype=np.float32)
    terms: NDArray[np.float32] = vectorizer.fit_transform(texts).toarray() * np.sqrt(
        TERMS, dtype=np.float32
    )
    missing = TERMS - terms.shape[1]
    return np.pad(terms, ((0, 0), (0, missing))) if missing else terms


def _of_lines(path: Path) -> Iterable[_Review]:
    unread: set[str] = set()
    for number, line in enumerate(text_of(path).rstrip("\n").split("\n"), start=1):
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
            domain, label, text = entry["domain"], entry["label"], entry["text"]
            if not isinstance(domain, str | int) or not isinstance(text, str):
                raise TypeError(f"got domain {domain!r:.80} and text {text!r:.80}")
        except KeyError as error:
            raise DataError(
                f"{where}: must be a JSON object of domain, label and text, lacks {error}"
            ) from error
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{where}: must be a JSON object of domain, label and text: {error}"
            ) from error
        unread |= entry.keys() - {"domain", "label", "text"}
        yield _Review(str(domain), text, sentiment(label, where))
    if unread and path.name not in AMAZON:
        warn_of_data(f"{path} holds keys that are not read: {', '.join(sorted(unread))}")


def _of_folders(folder: Path) -> Iterable[_Review]:
    for domain in folders_in(folder):
        for kind, label in LABELS.items():
            path = domain / f"{kind}.review"
            if not is_file(path):
                raise DataError(f"{domain} lacks {path.name}")
            content = text_of(path, "latin-1")
            found = REVIEW.findall(content)
            cut = "<review>" in content and not content.rstrip().endswith("</review>")
            if cut or len(found) != content.count(OPENING):
                raise DataError(f"{path} is truncated: a review has no end")
            texts = found or _of_counts(path, content, kind)
            if not texts:
                raise DataError(f"{path} holds no reviews")
            yield from (_Review(domain.name, text.strip(), label) for text in texts)


def _of_counts(path: Path, content: str, kind: str) -> list[str]:
    """Terms of lines `term:count ... #label#:positive`, as often as they occur."""
    texts = []
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        *pairs, label = line.split()
        if label != f"#label#:{kind}":
            raise DataError(f"{path}, line {number}: must end with #label#:{kind}, got {label!r}")
        counts = ((term, count) for term, _, count in (pair.rpartition(":") for pair in pairs))
        texts.append(
            " ".join(" ".join([term] * int(count)) for term, count in counts if count.isdigit())
        )
    return texts
