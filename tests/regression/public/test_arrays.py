"""Arrays as people have them: views, byte orders, small types, masks, buffers, data frames.

Reported to neighbouring projects: negative strides and rare types are refused, masks are ignored,
a data frame is read column by column.
"""

import numpy as np
import pytest
import torch

from bcfl import ClientData

pytestmark = pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")


@pytest.fixture
def rows(arrays):
    x, y, _ = arrays(1)[0]
    return x[:12], y[:12]


@pytest.fixture
def run(clients, mlp, federation):
    return federation(clients(), mlp(), "ifca").run(rounds=2)


def stored(inputs, targets):
    view = ClientData.from_arrays("a", (inputs, targets)).views["train"]
    return view.inputs.numpy(), view.targets.numpy()


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda x: x[:, ::-1], id="mirrored"),
        pytest.param(lambda x: x[::-1], id="reversed"),
        pytest.param(lambda x: x.astype(">f4"), id="big-endian"),
        pytest.param(lambda x: x.astype(np.longdouble), id="longdouble"),
        pytest.param(read_only, id="read-only"),
        pytest.param(lambda x: x.astype(np.float16), id="half"),
        pytest.param(lambda x: np.abs(100 * x).astype(np.uint16), id="uint16"),
        pytest.param(lambda x: x.tolist(), id="list"),
        pytest.param(np.asfortranarray, id="column-major"),
        pytest.param(lambda x: x > 0, id="bool"),
    ],
)
def test_inputs_keep_their_values(rows, change):
    given = change(rows[0])
    found, _ = stored(given, rows[1])
    np.testing.assert_array_equal(found, np.asarray(given, np.float64).astype(found.dtype))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda y: y[::-1], id="reversed"),
        pytest.param(lambda y: y.astype(">i8"), id="big-endian"),
        pytest.param(lambda y: y.astype(np.uint16), id="uint16"),
        pytest.param(lambda y: y.astype(np.uint64), id="uint64"),
        pytest.param(lambda y: y.astype(bool), id="bool"),
        pytest.param(lambda y: y.tolist(), id="list"),
    ],
)
def test_classes_keep_their_values(rows, change):
    given = change(rows[1])
    _, found = stored(rows[0], given)
    np.testing.assert_array_equal(found, np.asarray(given).astype(np.int64))


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.astype(np.float32),
        lambda y: y[:, None],
        lambda y: np.eye(2, dtype=np.int64)[y],
        lambda y: y + 1,
        lambda y: y - 1,
    ],
    ids=["floating", "column", "one-hot", "from-one", "unlabelled"],
)
def test_classes_that_are_none_are_refused_with_the_client(mlp, federation, rows, change):
    x, y = np.concatenate([rows[0]] * 2), np.tile([0, 1], 12)
    data = [ClientData.from_arrays(name, (x, change(y))) for name in ("site", "other")]
    with pytest.raises(ValueError, match=r"client '(site|other)'.*targets must be"):
        federation(data, mlp(), "ifca")


def test_masked_inputs_are_refused(rows):
    with pytest.raises((TypeError, ValueError), match="mask"):
        stored(np.ma.masked_greater(rows[0], 1.0), rows[1])


@pytest.mark.filterwarnings("ignore:Casting complex values:UserWarning")
def test_complex_inputs_are_refused(rows):
    with pytest.raises((TypeError, ValueError), match="complex"):
        stored(rows[0].astype(np.complex64), rows[1])


@pytest.mark.parametrize(
    "change",
    [lambda x: x.astype(object), lambda x: x.astype(str)],
    ids=["objects", "text"],
)
def test_inputs_that_are_no_numbers_are_refused(rows, change):
    with pytest.raises((TypeError, ValueError)):
        stored(change(rows[0]), rows[1])


def test_clients_made_of_one_buffer_hold_their_own_samples(arrays):
    buffer, data = np.empty((30, 4), np.float32), []
    for index, (x, y, _) in enumerate(arrays()):
        buffer[:] = x[:30]
        data.append(ClientData.from_arrays(f"c{index}", (buffer, y[:30])))
    for client, (x, _, _) in zip(data, arrays(), strict=True):
        np.testing.assert_array_equal(client.views["train"].inputs.numpy(), x[:30])


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_later_changes_of_the_callers_arrays_do_not_reach_a_client(rows, kind):
    x, y = kind(rows[0].copy()), kind(rows[1].copy())
    view = ClientData.from_arrays("a", (x, y)).views["train"]
    x *= float("nan")
    y += 7
    np.testing.assert_array_equal(view.inputs.numpy(), rows[0])
    np.testing.assert_array_equal(view.targets.numpy(), rows[1])


@pytest.mark.parametrize("executor", ["loop", "batched"])
def test_numbers_beyond_float32_are_refused_with_the_client(
    clients, mlp, federation, failures, rows, executor
):
    """By an error before any work, or as a failure of that client alone."""
    huge = ClientData.from_arrays("site", (np.full((12, 4), 1e300), rows[1]))
    try:
        run = federation([*clients(2), huge], mlp(), "ifca", executor=executor).run(rounds=1)
        told = failures(run)
    except ValueError as error:
        told = [str(error)]
    assert told
    assert all("site" in sentence for sentence in told)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda x: x[:, ::-1], id="mirrored"),
        pytest.param(lambda x: x.astype(">f4"), id="big-endian"),
        pytest.param(lambda x: torch.tensor(x).flip(-1), id="flipped-tensor"),
        pytest.param(lambda x: x.tolist(), id="list"),
        pytest.param(lambda x: x.astype(np.float64), id="double"),
    ],
)
def test_predictions_are_those_of_a_plain_array(run, rows, change):
    given = change(rows[0])
    plain = np.ascontiguousarray(np.asarray(given, np.float32))
    expected = run.predict("c0", plain).mean
    np.testing.assert_array_equal(run.predict("c0", given).mean, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_predictions_for_inputs_that_are_not_finite_are_refused(run, value):
    with pytest.raises(ValueError, match=r".*") as caught:
        run.predict("c0", np.full((2, 4), value))
    assert "inputs" in str(caught.value)
    assert "finite" in str(caught.value)


def test_no_inputs_give_no_predictions(run):
    assert run.predict("c0", np.zeros((0, 4), np.float32)).mean.shape == (0, 2)


def test_mirrored_samples_of_a_new_client_are_taken(run, rows):
    x, y = rows
    expected = run.predict_new(x, (np.ascontiguousarray(x[:, ::-1]), y)).mean
    np.testing.assert_array_equal(run.predict_new(x, (x[:, ::-1], y)).mean, expected)


@pytest.mark.parametrize(
    "dtype",
    [
        *(np.int32, bool, np.uint8),
        np.uint16,
    ],
)
def test_classes_of_a_new_client_may_have_any_whole_type(run, rows, dtype):
    x, y = rows
    expected = run.predict_new(x, (x, y)).mean
    np.testing.assert_array_equal(run.predict_new(x, (x, y.astype(dtype))).mean, expected)


class TestDataFrames:
    @pytest.fixture
    def pandas(self):
        return pytest.importorskip("pandas")

    def test_a_client_keeps_rows_and_order(self, pandas, rows):
        labels = pandas.Series(rows[1], index=range(len(rows[1]))[::-1])
        found = stored(pandas.DataFrame(rows[0]), labels)
        np.testing.assert_array_equal(found[0], rows[0])
        np.testing.assert_array_equal(found[1], rows[1])

    @pytest.mark.parametrize(
        ("count", "columns"),
        [
            (4, None),
            (10, None),
            (4, list("abcd")),
        ],
    )
    def test_predict_reads_rows(self, pandas, run, rows, count, columns):
        expected = run.predict("c0", rows[0][:count]).mean
        frame = pandas.DataFrame(rows[0][:count], columns=columns)
        np.testing.assert_array_equal(run.predict("c0", frame).mean, expected)

    @pytest.mark.parametrize("first", [0, 10])
    def test_a_new_clients_classes_keep_their_order(self, pandas, run, rows, first):
        x, y = rows
        labels = pandas.Series(y, index=range(first, first + len(y))[::-1])
        expected = run.predict_new(x, (x, y), temperature="mean").mean
        found = run.predict_new(x, (x, labels), temperature="mean").mean
        np.testing.assert_array_equal(found, expected)
