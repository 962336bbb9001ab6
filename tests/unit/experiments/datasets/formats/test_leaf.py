"""LEAF: users and their samples, tests set aside, tweets, word vectors."""

import json

import numpy as np
import pytest
from PIL import Image

from experiments import datasets, partitions
from experiments.datasets import DataError


def write(path, users):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {user: {"x": x, "y": y} for user, (x, y) in users.items()}
    sizes = [len(y) for _, y in users.values()]
    path.write_text(json.dumps({"users": list(users), "num_samples": sizes, "user_data": data}))


def drawn(count, level):
    return [[level] * 784] * count


def tweet(text):
    return ["1", "Mon", "NO_QUERY", "ann", text, "training"]


TWEET, NO_TEXT = json.dumps(tweet("good")), json.dumps(tweet(None))


@pytest.fixture
def femnist(tmp_path):
    data = tmp_path / "femnist" / "data"
    write(data / "train" / "a.json", {"f02": (drawn(3, 0.5), [0, 61, 3])})
    write(data / "train" / "b.json", {"f01": (drawn(2, 1), [7, 7])})
    test = {"f01": (drawn(1, 1), [9]), "f02": (drawn(1, 0.5), [10])}
    write(data / "test" / "a.json", test)
    return tmp_path


def test_femnist_keeps_writers_over_files_and_parts(femnist):
    for found in (datasets.load("femnist", femnist), datasets.load(femnist / "femnist")):
        assert (len(found), found.num_native_test, found.num_classes) == (7, 2, 62)
        assert found.input_shape == (1, 28, 28)
        assert found.writers.tolist() == [0, 0, 1, 1, 1, 0, 1]
        assert len(found.writer_names) == 2
        assert found.targets.tolist() == [7, 7, 0, 61, 3, 9, 10]
        assert found.inputs[:, 0, 0, 0].tolist() == [1, 1, 0.5, 0.5, 0.5, 1, 0.5]


def test_a_part_that_is_missing_is_named(femnist, sent140):
    for name in ("femnist", "sent140", "sent140-glove"):
        file = femnist / name.partition("-")[0] / "data" / "test" / "a.json"
        file.unlink(missing_ok=True)
        with pytest.raises(DataError, match=r"JSON files in data/train, but none in data/test"):
            datasets.load(name, femnist)


def test_pixels_of_another_scale(tmp_path):
    write(tmp_path / "femnist" / "all_data" / "a.json", {"ann": (drawn(2, 255), [1, 2])})
    with pytest.raises(DataError, match=r"pixels must be 0 to 1, as LEAF writes them, got 255 to"):
        datasets.load("femnist", tmp_path)


@pytest.mark.parametrize(
    "changes", [{"users": ["f01", "f02"]}, {"num_samples": [4]}, {"num_samples": [3, 1]}]
)
def test_users_and_numbers_that_contradict_the_samples(tmp_path, changes):
    path = tmp_path / "femnist" / "all_data" / "a.json"
    write(path, {"f01": (drawn(3, 0.5), [0, 61, 3])})
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(DataError, match=r"users and num_samples must agree with user_data"):
        datasets.load("femnist", tmp_path)


@pytest.mark.parametrize("users", [None, 5, [["a"]], "a"])
def test_users_and_numbers_of_other_types(tmp_path, users):
    path = tmp_path / "femnist" / "all_data" / "a.json"
    write(path, {"f01": (drawn(3, 0.5), [0, 61, 3])})
    for key, kind in (("users", "names"), ("num_samples", "whole numbers")):
        content = json.loads(path.read_text())
        path.write_text(json.dumps(content | {key: users}))
        with pytest.raises(DataError, match=rf"{key} must be a list of {kind}, got "):
            datasets.load("femnist", tmp_path)
        path.write_text(json.dumps(content))


def test_numbers_of_samples_may_be_written_with_a_point(tmp_path):
    path = tmp_path / "femnist" / "all_data" / "a.json"
    write(path, {"f01": (drawn(3, 0.5), [0, 61, 3])})
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"num_samples": [3.0]}))
    assert len(datasets.load("femnist", tmp_path)) == 3
    for wrong in (3.5, float("inf")):
        path.write_text(json.dumps(content | {"num_samples": [wrong]}))
        with pytest.raises(DataError, match=r"num_samples must be a list of whole numbers, got "):
            datasets.load("femnist", tmp_path)


def test_users_without_samples_are_neither_stated_nor_numbered(tmp_path):
    # LEAF's split_data.py lists only users of 2 or more samples, but has all in user_data.
    data = tmp_path / "femnist" / "data"
    for part, size in (("train", 2), ("test", 1)):
        path = data / part / f"all_data_niid_0_keep_0_{part}_9.json"
        write(path, {"f01": (drawn(size, 0.5), [3] * size), "f03": (drawn(size, 1), [4] * size)})
        content = json.loads(path.read_text())
        content["user_data"]["f02"] = {"x": [], "y": []}
        path.write_text(json.dumps(content))
    found = datasets.load("femnist", tmp_path)
    assert found.writers.tolist() == [0, 0, 1, 1, 0, 1]
    content["user_data"]["f02"] = {"x": drawn(1, 0), "y": [5]}
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"samples of 3: 'f02' has 1 in place of 0"):
        datasets.load("femnist", tmp_path)


def test_writers_with_too_few_samples_are_left_out(tmp_path):
    users = {f"f{number}": (drawn(size, 0.1), [1] * size) for number, size in enumerate((9, 3, 8))}
    write(tmp_path / "femnist" / "all_data" / "a.json", users)
    found = datasets.load("femnist", tmp_path)
    assert found.num_native_test == 0
    options = {"clients": 2, "min_samples": 5, "seed": 0}
    clients = partitions.build("writers", found, options).clients
    assert [data.client for data in clients] == ["f0", "f2"]
    with pytest.raises(ValueError, match="has 2 writers of at least min_samples=5"):
        partitions.build("writers", found, options | {"clients": 3})


@pytest.fixture
def sent140(tmp_path):
    data = tmp_path / "sent140" / "data"
    write(data / "train" / "a.json", {"ann": ([tweet("Good day"), tweet("bad")], [1, 0])})
    write(data / "test" / "a.json", {"bob": ([tweet("good")], ["4"])})
    return tmp_path


def test_tweets_as_word_numbers(sent140):
    tweets = datasets.load("sent140", sent140)
    assert (tweets.input_shape, tweets.num_native_test) == ((25,), 1)
    assert tweets.targets.tolist() == [1, 0, 1]
    assert tweets.writers.tolist() == [0, 0, 1]
    assert tweets.inputs[0, 0] == tweets.inputs[2, 0] > 0
    assert not tweets.inputs[:, 2:].any()


def test_a_text_may_be_a_number(sent140):
    users = {"ann": ([tweet("2009"), tweet(2009), tweet(0.5)], [1, 0, 1])}
    write(sent140 / "sent140" / "data" / "train" / "a.json", users)
    inputs = datasets.load("sent140", sent140).inputs
    np.testing.assert_array_equal(inputs[0], inputs[1])
    assert inputs[2, 0] > 0


def test_tweets_as_word_vectors(sent140):
    with pytest.raises(DataError, match=r"is there, but glove\.6B\.300d\.txt is not in"):
        datasets.load("sent140-glove", sent140)
    vectors = {"good": np.arange(4), "day": np.ones(4), "night": np.zeros(4)}
    rows = [" ".join([word, *map(str, vector)]) for word, vector in vectors.items()]
    (sent140 / "glove.6B.300d.txt").write_text("\n".join(rows))
    tweets = datasets.load("sent140-glove", sent140)
    assert tweets.input_shape == (25, 4)
    assert tweets.inputs[0, :3].tolist() == [[0, 1, 2, 3], [1, 1, 1, 1], [0, 0, 0, 0]]
    assert not tweets.inputs[1].any()
    (sent140 / "leaf" / "data").mkdir(parents=True)
    (sent140 / "sent140").rename(sent140 / "leaf" / "data" / "sent140")
    assert len(datasets.load("sent140-glove", sent140)) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "has JSON files in all_data, but none of LEAF, with user_data"),
        ('{"user_data": [1]}', "must be a JSON file of LEAF with user_data"),
        ('{"user_data": {}}', "holds no samples"),
        ('{"user_data": {"a": {"x": {"0": [0]}, "y": [0]}}}', "x and y of user 'a' must be lists"),
        ('{"user_data": {"a": {"x": [[0]], "y": 0}}}', "x and y of user 'a' must be lists"),
        ('{"user_data": {"a": {"x": ["1.jpg"], "y": [0]}}}', r"other data sets .* not read: could"),
        ('{"user_data": {"a": {"x": [[0]], "y": []}}}', "user 'a' has 1 inputs and 0 labels"),
        ('{"user_data": {"a": {"x": [[0]], "y": [0]}}}', "lists of 784 numbers"),
        ('{"user_data": {"a": {"x": [["one", "two"]], "y": [0]}}}', "their text in field 5"),
        (f'{{"user_data": {{"a": {{"x": [{TWEET}, "no list"], "y": [0, 1]}}}}}}', "got 'no list'"),
        (f'{{"user_data": {{"a": {{"x": [{TWEET}, {NO_TEXT}], "y": [0, 1]}}}}}}', "field 5, got"),
    ],
)
def test_damaged_files(tmp_path, content, message):
    folder = tmp_path / "femnist" / "all_data"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(content)
    with pytest.raises(DataError, match=message):
        datasets.load("femnist", tmp_path)


def test_labels_that_are_no_whole_numbers(tmp_path):
    for label in (3.7, "3"):
        write(tmp_path / "femnist" / "all_data" / "a.json", {"ann": (drawn(1, 0.5), [label])})
        with pytest.raises(DataError, match=r"labels must be whole numbers, as of FEMNIST"):
            datasets.load("femnist", tmp_path)


def test_a_file_that_cannot_be_read_is_named(femnist):
    path = femnist / "femnist" / "data" / "train" / "a.json"
    path.unlink()
    (path.parent / "b.json").unlink()
    path.symlink_to(femnist / "nowhere")
    with pytest.raises(DataError, match=r"has data/train/a\.json, which cannot be read"):
        datasets.load("femnist", femnist)


def test_images_by_class_beside_json_files_of_another_kind(tmp_path):
    for part in ("train", "test"):
        for name in "ab":
            (tmp_path / part / name).mkdir(parents=True)
            Image.new("L", (4, 4), 255).save(tmp_path / part / name / "1.png")
        (tmp_path / part / "_annotations.coco.json").write_text('{"images": [], "categories": []}')
    assert datasets.load(tmp_path).num_native_test == 2
