"""Loader of tweets, and texts as the numbers or vectors of their words."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bcfl.runtime import counted, warn_of_data
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DataError
from experiments.datasets.formats.files import ending_of, is_file, text_of

WORDS, LENGTH = 10_000, 25
"""Numbers that words are hashed to, and words of a tweet that are read."""
WORD = re.compile(r"[\w']+|[.,!?;]")
LINES = (".tsv", ".tsv.gz")
"""How names of files of lines `label<TAB>text` end."""
SENTIMENT140 = ("training.1600000.processed.noemoticon.csv", "sentiment140_100k.tsv.gz")
"""Files of Sentiment140."""
WITH_TABS = ("sentiment140_100k.tsv", "sentiment140_100k.tsv.gz")
"""Files whose tweets are known to hold tabs."""


def holds_tweets(path: Path) -> bool:
    """Whether a file holds labelled tweets, `.tsv`, `.tsv.gz` or the `.csv` of Sentiment140."""
    return is_file(path) and ending_of(path.name, (*LINES, ".noemoticon.csv")) != ""


def load_tweets(name: str, path: Path) -> Dataset:
    """Load tweets of two classes as word numbers; see `word_numbers`.

    Args:
        name: name of the data set.
        path: a file of lines `label<TAB>text`; or the file of Sentiment140 (Go et al., 2009), whose
            users are the writers. A warning tells of tabs inside texts.

    Raises:
        DataError: the file is corrupt or empty, or most lines have the same number of further
            columns.
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
    return Dataset(
        name=name,
        inputs=word_numbers(texts),
        targets=np.array(classes, dtype=np.int64),
        num_classes=2,
        source=str(path),
        writers=np.array(by) if len(set(by)) > 1 else None,
    )


def _labelled(path: Path, lines: str) -> tuple[list[int], list[str]]:
    """Classes and texts of lines `label<TAB>text`."""
    rows = []
    for number, line in enumerate(lines.split("\n"), start=1):
        label, tab, text = line.partition("\t")
        if line.strip() and not tab:
            raise DataError(f"{path}, line {number}: must be label<TAB>text, got {line!r:.80}")
        if tab:
            rows.append((number, label, text.removesuffix("\r")))
    fields = [field for *_, text in rows for field in text.rstrip("\t").split("\t")]
    if rows and all(map(_is_number, fields)):
        last = next((number for number, label, _ in rows if not _is_number(label)), None)
        got = "numbers alone; save a table as an .npz file with x_train and y_train"
        if last is not None:
            got = f"a label after the text in line {last}; write labels first"
        raise DataError(f"{path} must have lines label<TAB>text, got {got}")
    if path.name not in WITH_TABS:
        _check_tabs(path, {number: text for number, _, text in rows})
    classes = [sentiment(label, f"{path}, line {number}") for number, label, _ in rows]
    return classes, [text for *_, text in rows]


def _check_tabs(path: Path, texts: Mapping[int, str]) -> None:
    """Check that texts, by the number of their line, are no columns; tell of tabs inside them.

    Tabs at the end of a line are no columns.
    """
    inside = {number: text.rstrip("\t").count("\t") for number, text in texts.items()}
    lines = [number for number, tabs in inside.items() if tabs]
    if not lines:
        return
    tabs, count = Counter(inside.values()).most_common(1)[0]
    if tabs and 2 * count > len(texts):
        raise DataError(
            f"{path}, line {lines[0]}: must be label<TAB>text, got {tabs + 2} columns, as in "
            f"{count} of {len(texts)} lines; leave out all but two"
        )
    warn_of_data(
        f"{path}: {counted(len(lines), 'text')} of {len(texts)}, first in line {lines[0]}, "
        f"{'holds' if len(lines) == 1 else 'hold'} tabs, which are read as spaces"
    )


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
