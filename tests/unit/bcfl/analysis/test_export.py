"""Two rounds by hand, as labelled arrays and as a file."""

import builtins
from dataclasses import replace

import numpy as np
import pytest
import xarray

from bcfl import Association, Federation, HypothesisSet, Objective
from bcfl.analysis import export
from bcfl.analysis.export import to_xarray
from bcfl.hypotheses.history import Snapshot
from bcfl.methods import build

NAMES = ("a", "b", "c")


def snapshot(round, *rows, continues=()):
    """A snapshot of (weight, labels) rows."""
    associations = tuple(Association(NAMES, np.array(labels), 2) for _, labels in rows)
    weights = np.log([weight for weight, _ in rows])
    return Snapshot(
        round=round,
        log_weights=weights,
        associations=associations,
        parents=((0,),) * len(rows),
        log_captured_mass=-0.5 * round,
        continues=continues,
    )


@pytest.fixture
def history():
    """In round 2 all move, and the second hypothesis has clusters the other way round."""
    moved = (0.75, (1, 1, 0)), (0.25, (0, 1, 1))
    return (snapshot(1, (1.0, (0, 0, 1))), snapshot(2, *moved, continues=((), (1, 0))))


def test_weights_and_labels(history):
    found = to_xarray(history)
    assert found.sizes == {
        "round": 2,
        "hypothesis": 2,
        "client": 3,
        "cluster": 2,
        "other_client": 3,
    }
    np.testing.assert_allclose(found.hypothesis_weight, [[1, np.nan], [0.75, 0.25]])
    assert found.label.sel(round=1, hypothesis=0).values.tolist() == [0, 0, 1]
    assert found.label.sel(round=1, hypothesis=1).values.tolist() == [-1, -1, -1]
    assert found.label.sel(round=2, hypothesis=0).values.tolist() == [1, 1, 0]
    assert found.log_captured_mass.values.tolist() == [-0.5, -1.0]
    assert "group" not in found.coords


def test_clusters_keep_their_names_over_rounds_and_hypotheses(history):
    found = to_xarray(history)
    np.testing.assert_allclose(found.association.sel(client="a"), [[1, 0], [0, 1]])
    np.testing.assert_allclose(found.association.sel(client="c"), [[0, 1], [1, 0]])
    np.testing.assert_allclose(found.association.sel(client="b", round=2), [0.25, 0.75])


def test_clusters_of_other_hypotheses_are_told_by_their_models_not_their_clients():
    pair = (0.75, (0, 0, 1)), (0.25, (1, 1, 0))
    found = to_xarray((snapshot(1, *pair), snapshot(2, *pair, continues=((), (0, -1)))))
    assert found.label.sel(hypothesis=1).values.tolist() == [[1, 1, 0], [2, 2, 0]]
    expected = [[0.75, 0.25, 0], [0.75, 0, 0.25]]
    np.testing.assert_allclose(found.association.sel(client="a"), expected)


def test_co_association_needs_no_names(history):
    found = to_xarray(history).co_association.sel(round=2)
    np.testing.assert_allclose(found, [[1, 0.75, 0], [0.75, 1, 0.25], [0, 0.25, 1]])
    small = to_xarray(history, co_association=False)
    assert "co_association" not in small
    assert "other_client" not in small.dims


def test_clients_never_seen_and_groups(history):
    early = snapshot(1, (1.0, (0, -1, 1)))
    found = to_xarray((early, history[1]), {"a": 3, "b": None, "c": 4})
    assert found.group.sel(client="b") == -1
    assert found.group.sel(client="c") == 4
    assert found.association.sel(round=1, client="b").values.tolist() == [0, 0]
    assert found.co_association.sel(round=1).values.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]
    partly = to_xarray((snapshot(1, (0.5, (0, -1, 1)), (0.3, (0, 0, 1)), (0.2, (0, 1, 1))),))
    np.testing.assert_allclose(partly.association.sel(round=1, client="b"), [0.6, 0.4])


def test_a_run_in_a_file(linear, clients, tmp_path):
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=3, batch_size=4), temperature=4.0
    )
    run = Federation(clients, linear, build("bcfl-mh-3", **settings)).run(3)
    path = tmp_path / "run.nc"
    run.to_netcdf(path)
    with xarray.open_dataset(path, engine="scipy") as found:
        assert found.identical(run.to_xarray())
        assert found.client.values.tolist() == list(run.clients)
        np.testing.assert_allclose(found.association.sum("cluster"), 1)
        np.testing.assert_allclose(found.hypothesis_weight.sum("hypothesis"), 1)
        pair = {"client": "c0", "other_client": "c2"}
        edge = run.association_graph().get_edge_data("c0", "c2", {"probability": 0.0})
        last = found.co_association.sel(pair).isel(round=-1)
        assert float(last) == pytest.approx(edge["probability"])
        assert found.is_belief.values.tolist() == [False, False, True]
        assert found.label.attrs["long_name"].startswith("cluster of a client")


def test_what_is_missing_is_named(history, monkeypatch):
    with pytest.raises(ValueError, match="history must hold at least one round"):
        to_xarray(())
    original = builtins.__import__

    def without(name, *others):
        if name == "xarray":
            raise ModuleNotFoundError(name)
        return original(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'bcfl\[export\]'"):
        to_xarray(history)


def test_draws_have_the_posterior_probabilities(run):
    chosen, clusters = export._draws(run.hypotheses, 20000, np.random.default_rng(0))
    shares = np.bincount(chosen, minlength=len(run.hypotheses)) / len(chosen)
    np.testing.assert_allclose(shares, run.hypotheses.weights, atol=0.02)
    p = run.association_probabilities()
    found = np.stack([(clusters == k).mean(axis=0) for k in range(p.shape[1])], axis=1)
    np.testing.assert_allclose(found, p, atol=0.02)


def test_a_client_never_seen_is_in_no_cluster(run):
    leading = run.hypotheses.best
    belief = leading.membership.copy()
    belief[0] = 0
    alone = HypothesisSet((replace(leading, belief=belief, log_weight=0.0),))
    _, clusters = export._draws(alone, 5, np.random.default_rng(0))
    assert (clusters[:, 0] == -1).all()
    assert (clusters[:, 1:] >= 0).all()


@pytest.mark.filterwarnings("ignore")
def test_arviz_reads_the_draws(run):
    pytest.importorskip("arviz_base", reason="arviz-base is not installed")
    tree = run.to_arviz(draws=7)
    assert tree["posterior"]["cluster"].dims == ("chain", "draw", "client")
    assert dict(tree["posterior"].sizes) == {"chain": 1, "draw": 7, "client": len(run.clients)}
    with pytest.raises(ValueError, match="draws must be a whole number of at least 1, got 0"):
        run.to_arviz(draws=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("package", ["arviz_stats", "arviz"])
def test_arviz_summarises_the_draws(run, package):
    arviz = pytest.importorskip(package, reason=f"{package} is not installed")
    pytest.importorskip("arviz_base", reason="arviz-base is not installed")
    tree = run.to_arviz(draws=50)
    is_old = package == "arviz" and arviz.__version__ < "1"
    draws = tree["posterior"].to_dataset() if is_old else tree
    table = arviz.summary(draws, kind="stats", round_to="none")
    share = tree["posterior"]["cluster"].sel(client=run.clients[0]).mean().item()
    assert float(table.loc[f"cluster[{run.clients[0]}]", "mean"]) == pytest.approx(share)
