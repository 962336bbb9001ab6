"""Reviews as terms."""

import gzip
import json

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets import DataError, DataWarning

REVIEWS = [
    ("books", 1, "A good book, a good read"),
    ("books", 0, "A bad book"),
    ("dvd", 1, "Good film"),
    ("dvd", 0, "Bad, bad film"),
]


@pytest.fixture
def lines(tmp_path):
    keys = ("domain", "label", "text")
    rows = [json.dumps(dict(zip(keys, review, strict=True))) for review in REVIEWS]
    path = tmp_path / "amazon_reviews_4domains.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    return tmp_path


def test_tf_idf_by_hand(lines):
    reviews = datasets.load(lines / "amazon_reviews_4domains.jsonl.gz")
    assert (reviews.input_shape, reviews.num_classes) == ((5000,), 2)
    assert reviews.targets.tolist() == [1, 0, 1, 0]
    assert reviews.domains.tolist() == [0, 0, 1, 1]
    assert reviews.domain_names == ("books", "dvd")
    # Terms: bad, book, film, good, read; each of the first four is in two of four texts.
    common, rare = np.log(5 / 3) + 1, np.log(5 / 2) + 1
    expected = np.array([0, common, 0, 2 * common, rare])
    np.testing.assert_allclose(
        reviews.inputs[0, :5], expected / np.linalg.norm(expected) * 5000**0.5, 1e-5
    )
    np.testing.assert_allclose(reviews.inputs[3, :5] / 1000**0.5, [2, 0, 1, 0, 0], rtol=1e-5)
    assert not reviews.inputs[:, 5:].any()


def test_hashed_terms(lines):
    with pytest.warns(UserWarning, match="lacks the domains electronics, kitchen"):
        reviews = datasets.load("amazon-review-hashed", data_dir=lines)
    assert reviews.input_shape == (5000,)
    np.testing.assert_allclose((reviews.inputs**2).mean(axis=1), 1, rtol=1e-5)
    assert sorted(reviews.inputs[3][reviews.inputs[3] > 0] / 1000**0.5) == pytest.approx([1, 2])


def test_domains_of_reviews_that_are_not_there_are_listed(tmp_path, lines):
    listed = {info.name: info.lacks for info in datasets.available(lines)}
    assert listed["amazon-review"] == ("electronics", "kitchen")
    for domain in ("books", "electronics", "kitchen_&_housewares"):
        folder = tmp_path / "other" / "sorted_data_acl" / domain
        folder.mkdir(parents=True)
        (folder / "positive.review").touch()
    listed = {info.name: info for info in datasets.available(tmp_path / "other")}
    assert listed["amazon-review"].gap == "domain dvd of amazon-review"


def test_folders_of_text_and_of_counts_are_the_same_reviews(tmp_path, lines):
    label = {0: "negative", 1: "positive"}
    text, counts = tmp_path / "text" / "sorted_data_acl", tmp_path / "counts" / "processed_acl"
    for domain, number, words in REVIEWS:
        for folder in (text / domain, counts / domain):
            folder.mkdir(parents=True, exist_ok=True)
        review = f"<review>\n<review_text>\n{words}\n</review_text>\n</review>\n"
        (text / domain / f"{label[number]}.review").write_text(review)
        terms = words.lower().replace(",", "").split()
        pairs = [f"{term}:{terms.count(term)}" for term in sorted(set(terms))]
        line = " ".join([*pairs, f"#label#:{label[number]}"])
        (counts / domain / f"{label[number]}.review").write_text(line + "\n")
    expected = datasets.load(lines / "amazon_reviews_4domains.jsonl.gz")
    order = [1, 0, 3, 2]  # negative reviews of a domain come first
    for folder in (text, counts):
        found = datasets.load(folder)
        np.testing.assert_allclose(found.inputs, expected.inputs[order], atol=1e-6)
        assert found.targets.tolist() == [0, 1, 0, 1]
    (counts / "dvd" / "negative.review").unlink()
    with pytest.raises(DataError, match=r"dvd lacks negative\.review"):
        datasets.load("amazon-review", data_dir=counts.parent)


def write_reviews(folder, domains, content="good:2 #label#:{}\n"):
    for domain in domains:
        (folder / domain).mkdir(parents=True)
        for kind in ("positive", "negative"):
            (folder / domain / f"{kind}.review").write_text(content.format(kind))


def test_domains_of_amazon_review_that_are_not_there(tmp_path):
    folder = tmp_path / "processed_acl"
    write_reviews(folder, ["books", "kitchen_&_housewares", "electronics"])
    with pytest.warns(UserWarning, match=r"processed_acl lacks the domain dvd"):
        reviews = datasets.load("amazon-review", tmp_path)
    assert reviews.source.endswith("not here: dvd")
    write_reviews(folder, ["dvd"])
    assert "not here" not in datasets.load("amazon-review", tmp_path).source


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"books.negative\.review holds no reviews"),
        ("bad:1 #label#:positive\n", r"line 1: must end with #label#:negative"),
        ("bad:1 #label#:negative\nbad", r"line 2: must end with #label#:negative"),
        ("<review_text>a</review_text>\n<review_text>b", r"is truncated"),
        ("<review><review_text>a</review_text></review><review>", r"is truncated"),
    ],
)
def test_damaged_files_of_reviews(tmp_path, content, message):
    write_reviews(tmp_path / "processed_acl", ["books"])
    (tmp_path / "processed_acl" / "books" / "negative.review").write_text(content)
    with pytest.raises(DataError, match=message):
        datasets.load("amazon-review", tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        '{"domain": "dvd", "text": "x"}',
        "[1]",
        '{"domain": "dvd", "label": 0, "text": null}',
        '{"domain": null, "label": 0, "text": "x"}',
        '{"domain": ["a"], "label": 0, "text": "x"}',
    ],
)
def test_damaged_lines_are_named(tmp_path, line):
    (tmp_path / "own.jsonl").write_text(json.dumps({"domain": "a", "label": 0, "text": "b"}))
    with (tmp_path / "own.jsonl").open("a") as file:
        file.write("\n" + line)
    with pytest.raises(DataError, match=r"own\.jsonl, line 2: must be a JSON object"):
        datasets.load("own", data_dir=tmp_path)


def test_reviews_without_words(tmp_path):
    lines = [json.dumps({"domain": "a", "label": label, "text": "!"}) for label in (0, 1)]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"own\.jsonl: reviews must have words of two letters"):
        datasets.load("own", data_dir=tmp_path)


def test_keys_of_reviews_that_are_not_read_are_told(tmp_path):
    review = {"domain": "a", "label": 0, "text": "good book", "writer": "ann", "rating": 5}
    for name in ("own.jsonl", "amazon-review.jsonl.gz"):
        content = json.dumps(review).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.warns(DataWarning, match=r"own\.jsonl holds keys .* not read: rating, writer$"):
        datasets.load("own", tmp_path)
    assert len(datasets.load(tmp_path / "amazon-review.jsonl.gz")) == 1
