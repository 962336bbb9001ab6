import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from sklearn.metrics import adjusted_rand_score

from bcfl import ClientData, Federation, Objective, analysis
from bcfl.analysis import metrics, rows
from bcfl.analysis.export import to_xarray
from bcfl.architecture.layout import Part
from bcfl.hypotheses import Membership
from bcfl.methods import build
from bcfl.policies import FedAvg


def test_every_object_says_what_it_is_in_one_line(run, linear, clients):
    federation = Federation(clients, linear, FedAvg(Objective()))
    hypothesis = run.hypotheses.best
    for value in (
        federation,
        run,
        run.hypotheses,
        hypothesis,
        hypothesis.association,
        hypothesis.clusters[0],
        hypothesis.clusters[0].blocks[0],
        hypothesis.clusters[0].blocks[0].gaussian,
        run.predict("c0", np.zeros((2, 3))),
        linear,
        clients[0],
        run.state,
        run.state.history[-1],
        run.records[-1],
    ):
        assert "\n" not in repr(value)
        assert len(repr(value)) < 200
        assert type(value).__name__ in repr(value)
    assert repr(run).startswith("Run(2 rounds, HypothesisSet(3 hypotheses, effective ")
    assert repr(federation).startswith("Federation(4 clients, Model(linear: (3,) -> 2")


def test_probabilities_and_entropies_are_over_the_hypotheses(run):
    p = run.association_probabilities()
    assert p.shape == (4, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(run.association_entropy(), entropy(p, axis=1), atol=1e-12)
    assert run.clients == ("c0", "c1", "c2", "c3")


def test_the_history_ends_with_what_is_believed_now(run):
    believed = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    now = replace(run.hypotheses[0], belief=believed)
    rest = tuple(run.hypotheses)[1:]
    later = replace(
        run, state=replace(run.state, hypotheses=replace(run.hypotheses, hypotheses=(now, *rest)))
    )
    first, last = later.history
    assert first is run.state.history[0]
    np.testing.assert_array_equal(last.beliefs[0], believed)


def test_data_frames_name_clients_whatever_their_order(linear, run):
    random, names = np.random.default_rng(0), [f"hospital-{i}" for i in (1, 2, 10, 11)]
    clients = [
        ClientData.from_arrays(name, (random.normal(size=(9, 3)), random.integers(2, size=9)))
        for name in names
    ]
    found = Federation(clients, linear, FedAvg(Objective())).run(1)
    assert list(found.association_dataframe().index) == list(found.clients) != names
    frame, together = run.association_dataframe(), run.co_association_dataframe()
    assert (frame.index.name, frame.columns.name) == ("client", "cluster")
    assert (together.index.name, together.columns.name) == ("client", "other_client")
    np.testing.assert_array_equal(frame, run.association_probabilities())
    np.testing.assert_array_equal(together, run.co_association())
    for row, client in enumerate(run.clients):
        assert frame.loc[client].tolist() == run.association_probabilities()[row].tolist()
        assert together.loc[client, "c1"] == run.co_association()[row, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda run, groups: run.metrics(groups),
        lambda run, groups: rows.round_row(run.records[-1], groups, 0.0),
        lambda run, groups: analysis.association_graph(run.hypotheses, groups),
        lambda run, groups: analysis.accumulated_association_graph(run.state.history, groups),
        lambda run, groups: analysis.client_cluster_graph(run.hypotheses, groups),
        lambda run, groups: analysis.support_graph(run.hypotheses.best, groups),
        lambda run, groups: to_xarray(run.state.history, groups),
    ],
)
def test_groups_of_unknown_clients_are_refused(run, call):
    message = r"groups must be of the clients 'c0', .*, got a group of 'c00'\. Did you mean 'c0'"
    with pytest.raises(ValueError, match=message):
        call(run, {"c00": 0, "c1": 1})
    with pytest.raises(ValueError, match=r"got a group of 'x' and 1 more\. Leave out"):
        call(run, {"x": 0, "y": 0})
    call(run, {"c1": 1})


def test_metrics_are_those_of_the_last_round(run):
    groups = {"c0": 0, "c1": 0, "c2": 1, "c3": None}
    found = run.metrics(groups)
    evaluations = run.records[-1].evaluations
    assert found["accuracy"] == metrics.micro_accuracy(evaluations)
    assert found["nll"] == metrics.nll(evaluations)
    labels = run.hypotheses.best.association.labels[:3]
    assert found["ari"] == adjusted_rand_score([0, 0, 1], labels)
    assert run.metrics() == pytest.approx(run.metrics(run.groups), nan_ok=True)


def test_metrics_that_are_not_known_are_nan(run):
    bare = replace(run, records=())
    found = bare.metrics(dict.fromkeys(run.clients))
    assert all(np.isnan(value) for value in found.values())
    assert set(found) == set(run.metrics())


def test_nothing_is_known_of_a_client_never_seen(linear, clients):
    settings = dict(num_clusters=2, objective=Objective(local_steps=3, batch_size=4))
    run = Federation(clients, linear, build("bcfl-g", **settings), client_fraction=0.25).run(1)
    unseen = run.association_probabilities().sum(axis=1) == 0
    assert unseen.sum() == 3
    assert run.association_entropy()[unseen].tolist() == pytest.approx([np.log(2)] * 3)
    (seen,) = run.association_probabilities()[~unseen]
    assert run.association_entropy()[~unseen].tolist() == pytest.approx([entropy(seen)])


def test_a_prediction_splits_its_entropy(run):
    x = np.random.default_rng(0).normal(size=(7, 3))
    prediction = run.predict("c1", x)
    np.testing.assert_allclose(prediction.mean.sum(axis=1), 1)
    np.testing.assert_allclose(prediction.entropy, entropy(prediction.mean, axis=1))
    np.testing.assert_allclose(
        prediction.entropy, prediction.data_uncertainty + prediction.association_uncertainty
    )
    assert (prediction.association_uncertainty >= -1e-12).all()
    assert prediction.association_uncertainty.max() > 0


def test_a_prediction_is_that_of_the_believed_mixture(run, linear):
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    wanted = np.zeros((7, 2))
    for posterior, weight in Membership.of_client(run.hypotheses, "c1").mixture.items():
        mean = posterior.mean(linear).double().numpy()
        logits = x @ mean[:6].reshape(2, 3).T + mean[6:]
        odds = np.exp(logits - logits.max(1, keepdims=True))
        wanted += weight * odds / odds.sum(1, keepdims=True)
    np.testing.assert_allclose(run.predict("c1", x).mean, wanted, rtol=1e-5)


def test_one_model_has_no_association_uncertainty(linear, clients):
    run = Federation(clients, linear, FedAvg(Objective(local_steps=2, batch_size=4))).run(1)
    prediction = run.predict("c0", np.ones((3, 3)))
    np.testing.assert_allclose(prediction.association_uncertainty, 0, atol=1e-12)
    np.testing.assert_allclose(prediction.entropy, prediction.data_uncertainty)


@pytest.mark.parametrize(
    "asks",
    [
        lambda run: run.predict("c00", np.ones((1, 3))),
        lambda run: run.tuned(clients=["c00"], view="test"),
        lambda run: run.hypotheses.best.served_by("c00"),
        lambda run: run.hypotheses.best.association.label("c00"),
    ],
)
def test_an_unknown_client_is_refused_with_the_nearest_name(run, asks):
    with pytest.raises(ValueError, match=r"one of 'c0', .*, got 'c00'. Did you mean 'c0'\?"):
        asks(run)
    with pytest.raises(ValueError, match=r"client must be one of .*, got 3. Did you mean 'c3'\?"):
        run.predict(3, np.ones((1, 3)))
    for odd in (np.ones((1, 3)), torch.ones(1, 3), ["c0"], None):
        kind = type(odd).__name__
        with pytest.raises(TypeError, match=f"client must be one of 'c0', .*, got a {kind}"):
            run.predict(odd, "c0")


def test_predictions_refuse_inputs_that_do_not_fit(run):
    message = r"must have shape \(samples, 3\), got \(3,\); one sample alone is `inputs\[None\]`"
    with pytest.raises(ValueError, match=message):
        run.predict("c0", np.ones(3))
    with pytest.raises(ValueError, match=r"inputs must have shape \(samples, 3\), got \(2, 4\)$"):
        run.predict("c0", np.ones((2, 4)))


def test_regressions_have_no_class_probabilities(regression):
    from bcfl import ClientData

    data = ClientData.from_arrays("a", (np.ones((4, 3)), np.ones((4, 1))))
    run = Federation([data], regression, FedAvg(Objective(local_steps=1, batch_size=4))).run(1)
    with pytest.raises(ValueError, match=r"needs a model of classes .*; see predict_values"):
        run.predict("a", np.ones((1, 3)))
    message = "predict_new needs a model of classes .*; see predict_new_values"
    with pytest.raises(ValueError, match=message):
        run.predict_new(np.ones((1, 3)), (np.ones((4, 3)), np.ones((4, 1))))
    with pytest.raises(ValueError, match="runs must predict classes or labels, 'run' predicts num"):
        run.plot_reliability()


@pytest.fixture
def changing(linear, clients):
    """Clients with data of two time steps."""
    return [
        ClientData(data.client, {**data.views, "train:1": data.views["train"]}) for data in clients
    ]


@pytest.mark.parametrize("name", ["apd", "fedweit"])
def test_an_earlier_step_is_predicted_with_what_the_client_kept_of_it(linear, changing, name):
    run = Federation(changing, linear, build(name, objective=Objective(local_steps=3))).run(4)
    client, inputs = run.clients[0], torch.randn(5, 3)
    now, then = run.predict(client, inputs), run.predict(client, inputs, step=0)
    assert not np.allclose(now.mean, then.mean)
    best = run.hypotheses.best
    kept = best.carried_models[f"model of {client} at time step 0"]
    today = best.clusters[best.association.label(client)]
    mean = kept.mean(run.model).clone()
    shared = run.model.chosen(Part("shared"))
    mean[shared] = today.mean(run.model)[shared]
    network = run.model.network(mean, kept.buffers(run.model))
    with torch.no_grad():
        np.testing.assert_allclose(then.mean, network(inputs).softmax(1), atol=1e-6)
    np.testing.assert_array_equal(run.predict(client, inputs, step=1).mean, now.mean)


def test_methods_without_parts_of_time_steps_predict_all_alike(run):
    client, inputs = run.clients[0], torch.randn(5, 3)
    np.testing.assert_array_equal(
        run.predict(client, inputs).mean, run.predict(client, inputs, step=0).mean
    )
    with pytest.raises(ValueError, match="step must be a whole number of at least 0, got -1"):
        run.predict(client, inputs, step=-1)


def test_a_data_frame_has_a_line_for_each_round(run):
    frame = run.to_dataframe()
    assert frame["round"].tolist() == [1, 2]
    assert frame["accuracy"].iloc[-1] == run.metrics()["accuracy"]
    assert frame["trainings_run"].tolist() == [r.ledger.trainings_run for r in run.records]
    assert frame["failures"].tolist() == [0, 0]
    assert all(kind.kind in "fiO" for kind in frame.dtypes)


def test_without_pandas_a_data_frame_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'bcfl\[export\]'"):
        rows.to_dataframe([])


def test_notebooks_show_metrics_and_hypotheses(run):
    shown = run._repr_html_()
    assert f"{run.metrics()['accuracy']:.3f}" in shown
    assert "3 hypotheses, effective" in shown
    assert shown.count("<tr>") == 2 + 1 + len(run.hypotheses)
