"""Texts as numbers: reviews as TF-IDF or hashed terms, tweets as word numbers or vectors."""

from __future__ import annotations

import csv
import io
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

Features = Literal["tf-idf", "hashed"]
TERMS = 5000
"""Features of a review."""
WORDS, LENGTH = 10_000, 25
"""Numbers that words are hashed to, and words of a tweet that are read."""
WORD = re.compile(r"[\w']+|[.,!?;]")
OPENING = "<review_text>"
REVIEW = re.compile(OPENING + r"(.*?)</review_text>", re.DOTALL)
DOMAINS = ("books", "dvd", "electronics", "kitchen")
LABELS = {"negative": 0, "positive": 1}
REVIEW_ENDINGS = (".jsonl", ".jsonl.gz")
TWEET_ENDINGS = (".tsv", ".tsv.gz", ".noemoticon.csv")
AMAZON = ("amazon-review.jsonl.gz", "amazon_reviews_4domains.jsonl.gz")
"""Files of AmazonReview, which hold more than is read."""
SENTIMENT140 = ("training.1600000.processed.noemoticon.csv", "sentiment140_100k.tsv.gz")
"""Files of Sentiment140, whose tweets may hold tabs."""


@dataclass(frozen=True)
class _Review:
    domain: str
    text: str
    label: int


def holds_reviews(path: Path) -> bool:
    """Whether a path is a file of reviews, `.jsonl` or `.jsonl.gz`, or a folder of domains."""
    if is_file(path):
        return ending_of(path.name, REVIEW_ENDINGS) != ""
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
    domains = sorted({review.domain for review in reviews})
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
        domains=np.array([domains.index(review.domain) for review in reviews], dtype=np.int64),
        domain_names=tuple(domains),
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


def holds_tweets(path: Path) -> bool:
    """Whether a file holds labelled tweets, `.tsv`, `.tsv.gz` or the `.csv` of Sentiment140."""
    return is_file(path) and ending_of(path.name, TWEET_ENDINGS) != ""


def load_tweets(name: str, path: Path) -> Dataset:
    """Load tweets of two classes as word numbers; see `word_numbers`.

    Args:
        name: name of the data set.
        path: a file of lines `label<TAB>text`, of which each has one tab; or the file of
            Sentiment140 (Go et al., 2009), whose users are the writers.

    Raises:
        DataError: the file is corrupt or empty, or a line has more tabs.
    """
    is_published = ending_of(path.name, (".csv",)) != ""
    lines = text_of(path, "latin-1" if is_published else "utf-8-sig")
    if is_published:
        try:
            read = [row for row in csv.reader(io.StringIO(lines)) if row]
        except csv.Error as error:
            raise DataError(f"{path} cannot be read: {error}") from error
        odd = next((number for number, row in enumerate(read, start=1) if len(row) != 6), None)
        if odd is not None:
            raise DataError(f"{path}, tweet {odd}: must have 6 fields, got {len(read[odd - 1])}")
        classes = [sentiment(row[0], f"{path}, tweet {n}") for n, row in enumerate(read, start=1)]
        texts, by = [row[5] for row in read], [row[4] for row in read]
    else:
        classes, texts = _labelled(path, lines)
        by = []
    if not texts:
        raise DataError(f"{path} holds no tweets; lines must be label<TAB>text")
    users = sorted(set(by))
    numbers = {user: number for number, user in enumerate(users)}
    return Dataset(
        name=name,
        inputs=word_numbers(texts),
        targets=np.array(classes, dtype=np.int64),
        num_classes=len(LABELS),
        source=str(path),
        writers=np.array([numbers[user] for user in by]) if len(users) > 1 else None,
    )


def _labelled(path: Path, lines: str) -> tuple[list[int], list[str]]:
    """Classes and texts of lines `label<TAB>text`."""
    rows = []
    for number, line in enumerate(lines.split("\n"), start=1):
        label, tab, text = line.partition("\t")
        if line.strip() and not tab:
            raise DataError(f"{path}, line {number}: must be label<TAB>text, got {line!r:.80}")
        if tab:
            rows.append((number, label, text))
    if rows and all(_is_number(field) for *_, text in rows for field in text.split("\t")):
        raise DataError(
            f"{path} must have lines label<TAB>text, got numbers alone; save a table as an .npz "
            "file with x_train and y_train"
        )
    columns = [number for number, _, text in rows if "\t" in text]
    if columns and path.name not in SENTIMENT140:
        raise DataError(
            f"{path}, line {columns[0]}: must be label<TAB>text with one tab, got more; other "
            "columns are not read, and tabs of a text are to be spaces"
        )
    classes = [sentiment(label, f"{path}, line {number}") for number, label, _ in rows]
    return classes, [text for *_, text in rows]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def sentiment(label: object, where: str) -> int:
    """Class 0 or 1 of a label 0, 1 or 4 (positive, in Sentiment140).

    Args:
        label: the label, as text or a number.
        where: the file, and the line if it has lines, for the message.

    Raises:
        DataError: it is another label.
    """
    if str(label) not in ("0", "1", "4"):
        raise DataError(
            f"{where}: labels must be 0 (negative) and 1 or 4 (positive), got {label!r}"
        )
    return int(str(label) != "0")


def word_numbers(texts: Sequence[str]) -> NDArray[np.float32]:
    """Texts as the numbers of their first 25 words, for networks that begin with an embedding.

    Words are hashed to 1 to 9,999; shorter texts end with zeros.

    Args:
        texts: one text per sample, in lower or upper case alike.

    Returns:
        (samples, 25) whole numbers, float32.
    """
    from sklearn.utils import murmurhash3_32

    numbers = np.zeros((len(texts), LENGTH), dtype=np.float32)
    known: dict[str, int] = {}
    for row, text in zip(numbers, texts, strict=True):
        for place, word in enumerate(WORD.findall(text.lower())[:LENGTH]):
            if word not in known:
                known[word] = 1 + murmurhash3_32(word, positive=True) % (WORDS - 1)
            row[place] = known[word]
    return numbers


def word_vectors(texts: Sequence[str], path: Path) -> NDArray[np.float32]:
    """Texts as sequences of 25 pretrained vectors; words without one are left out.

    Shorter texts end with zeros.

    Args:
        texts: one text per sample.
        path: file of lines `word number number ...`, as of GloVe (Pennington et al., 2014).

    Returns:
        (samples, 25, features) float32.

    Raises:
        DataError: the file is corrupt, or has none of the words.
    """
    wanted = [WORD.findall(text.lower()) for text in texts]
    vectors = _vectors(path, {word for words in wanted for word in words})
    if not vectors:
        raise DataError(f"{path} has vectors for none of the words")
    features = len(next(iter(vectors.values())))
    sequences = np.zeros((len(texts), LENGTH, features), dtype=np.float32)
    for sequence, words in zip(sequences, wanted, strict=True):
        found = [vectors[word] for word in words if word in vectors][:LENGTH]
        if found:
            sequence[: len(found)] = found
    return sequences


def _vectors(path: Path, wanted: set[str]) -> dict[str, NDArray[np.float32]]:
    vectors = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                word, _, numbers = line.partition(" ")
                if word in wanted:
                    vectors[word] = np.array(numbers.split(), dtype=np.float32)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as word vectors: {error}") from error
    if len({vector.shape for vector in vectors.values()}) > 1:
        raise DataError(f"{path} must have vectors of one length")
    return vectors


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
