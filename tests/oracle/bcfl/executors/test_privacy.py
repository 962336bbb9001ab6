"""Local differential privacy: clipping and noise as stated, epsilon by the closed form.

The privacy profile of the Gaussian mechanism is that of Balle and Wang, "Improving the Gaussian
Mechanism for Differential Privacy" (2018), theorem 8.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, checkpoint, methods
from bcfl.analysis import rows
from bcfl.analysis.rows import privacy_columns
from bcfl.executors import Privacy, Randomized
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol import Evidence, LossSum, Predictions, Score, Train, Trained
from bcfl.protocol.statistics.best_counts import BestModels

ALMOST_NONE = 1e-9
LOSS = LossSum(6.0, 0.0, 10)
TRAINING = Objective(local_steps=3, batch_size=4)


@dataclass
class Fixed:
    """Answers with a trained model or a loss, and counts what clients were asked."""

    model: Model
    step: torch.Tensor | float = 0.0
    loss: LossSum = LOSS
    asked: Counter = field(default_factory=Counter)

    def answer(self, requests, models, round):
        return {request: self._one(request, models) for request in requests}

    def _one(self, request, models):
        self.asked[request.client] += 1 if isinstance(request, Train) else len(request.models)
        if isinstance(request, Score):
            return dict.fromkeys(request.models, self.loss)
        return Trained(
            mean=models[request.start].mean(self.model) + self.step,
            buffers=torch.empty(0),
            curvature=torch.tensor(7.0),
            num_samples=7,
        )


def wide_network():
    network = nn.Linear(400, 250)
    network.bias.requires_grad_(False)
    return network


def model_of(build=wide_network, **options):
    return Model(name="wide", build=build, input_shape=(400,), num_outputs=250, **options)


def asked(request, executor, **options):
    """The answer, the model that was sent, and the answer without privacy."""
    model, privacy = executor.model, Privacy(**options)
    posterior = from_initial(model, "start", *model.initial(0), 1.0)
    models = {"start": posterior, "other": posterior}
    outcome = Randomized(executor, privacy, model, 3).answer([request], models, 2)[request]
    return outcome, posterior.mean(model), executor.answer([request], models, 2)[request]


@pytest.mark.parametrize(("length", "expected"), [(0.5, 0.5), (2.0, 2.0), (50.0, 2.0)])
def test_updates_are_clipped_to_the_norm(length, expected):
    model = model_of()
    step = torch.zeros(model.layout.num_parameters)
    step[:400] = length / 20
    answer, start, _ = asked(
        Train("a", "start", TRAINING), Fixed(model, step), clip=2.0, noise_multiplier=ALMOST_NONE
    )
    moved = (answer.mean - start).double()
    assert float(moved.norm()) == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(
        moved / moved.norm(), (step / step.norm()).double(), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("step", [math.nan, math.inf])
def test_an_update_that_is_no_number_counts_as_none(step):
    answer, start, _ = asked(
        Train("a", "start", TRAINING), Fixed(model_of(), step), noise_multiplier=ALMOST_NONE
    )
    torch.testing.assert_close(answer.mean, start)


def test_noise_has_the_stated_spread_where_training_moves_parameters():
    """Twice the clip is the distance between two clipped updates; the bias is not trained."""
    answer, start, _ = asked(
        Train("a", "start", TRAINING), Fixed(model_of()), clip=0.5, noise_multiplier=3.0
    )
    noise = (answer.mean - start).double().numpy()
    weights, bias = noise[:100_000], noise[100_000:]
    assert weights.std() == pytest.approx(3.0 * 2 * 0.5, rel=0.02)
    assert abs(weights.mean()) < 0.05
    assert not bias.any()


@pytest.mark.parametrize(("total", "mean"), [(6.0, 0.6), (1e9, 2.5), (-8.0, 0.0), (math.nan, 2.5)])
def test_mean_losses_are_clipped(total, mean):
    executor = Fixed(model_of(), loss=LossSum(total, 0.0, 10))
    answer, *_ = asked(
        Score(client="a", models=("start",)), executor, loss_bound=2.5, noise_multiplier=ALMOST_NONE
    )
    assert answer["start"].total == pytest.approx(10 * mean, abs=1e-5)


def test_losses_have_the_stated_spread():
    answers = [
        asked(
            Score(client=f"client {n}", models=("start", "other")),
            Fixed(small()),
            loss_bound=2.0,
            noise_multiplier=1.5,
        )[0]
        for n in range(1000)
    ]
    means = np.array([[one.total / 10 for one in answer.values()] for answer in answers])
    assert (means - 0.6).std() == pytest.approx(1.5 * 2.0, rel=0.05)
    assert abs(np.corrcoef(means.T)[0, 1]) < 0.1
    assert answers[0]["start"].standard_error == pytest.approx(10 * 1.5 * 2.0)


def small(build=lambda: nn.Sequential(nn.Linear(3, 2)), **options):
    return Model(name="small", build=build, input_shape=(3,), num_outputs=2, **options)


@pytest.mark.parametrize("statistic", [BestModels(), Evidence(), Predictions((1.0,))])
def test_other_statistics_of_training_samples_are_refused(statistic):
    executor = Fixed(small())
    request = Score(client="a", models=("start",), statistic=statistic)
    outcome, *_ = asked(request, executor)
    assert outcome.kind == "refused"
    assert f"{statistic.name} has no stated sensitivity" in outcome.text
    tested, _, expected = asked(replace(request, view="test"), executor)
    assert tested == expected


@pytest.mark.parametrize(("multiplier", "releases"), [(1.0, 1), (4.0, 1), (2.0, 50), (0.3, 200)])
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_epsilon_is_that_of_the_closed_form(multiplier, releases, delta):
    pytest.importorskip("dp_accounting", reason="the extra 'privacy' is not installed")
    privacy = Privacy(noise_multiplier=multiplier, delta=delta)
    epsilon, mu = privacy.epsilon(releases), math.sqrt(releases) / multiplier
    left = norm.cdf(mu / 2 - epsilon / mu)
    right = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
    assert left - right == pytest.approx(delta, rel=1e-3)
    assert privacy.epsilon(0) == 0


@pytest.fixture
def federation():
    def of(name, model=None, **arguments):
        random = np.random.default_rng(2)
        clients = [
            ClientData.from_arrays(
                f"c{index}",
                *(
                    (
                        random.normal(size=(size, 3)).astype(np.float32),
                        random.integers(0, 2, size),
                    )
                    for size in (5 + index, 4)
                ),
            )
            for index in range(4)
        ]
        covered = {"num_clusters": 2, "curvature": "samples", "belief_temperature": 16.0}
        options = methods.applicable(name, covered)
        method = methods.build(name, objective=TRAINING, **options)
        arguments = {"device": "cpu", "privacy": Privacy(), **arguments}
        return Federation(clients, model or small(), method, **arguments)

    return of


@pytest.mark.parametrize(
    ("name", "options"), [("wecfl", {"calibration": 0.2}), ("bcfl-g", {"validation": 0.2})]
)
def test_samples_are_not_set_aside_for_sums_that_nobody_sends(name, options, federation):
    clients = federation("fedavg").clients
    given = methods.applicable(name, {"num_clusters": 2, "curvature": "samples"})
    method = methods.build(name, objective=TRAINING, **given, **options)
    with pytest.raises(ValueError, match=r"^privacy: calibration .* held-out .* got 0\.2$"):
        Federation(clients, small(), method, privacy=Privacy())
    Federation(clients, small(), method)


def test_samples_by_which_a_method_judges_hypotheses_are_set_aside(federation):
    options = {"num_clusters": 2, "curvature": "samples", "judge": "held_out"}
    method = methods.build("bcfl-g", objective=TRAINING, **options)
    run = Federation(federation("fedavg").clients, small(), method, privacy=Privacy()).run(1)
    assert not run.records[0].ledger.failures
    with pytest.raises(ValueError, match=r"privacy do not send .*view='test'"):
        run.tuned("plug-in")
    assert run.tuned("plug-in", view="test").temperature > 0


@pytest.mark.parametrize("name", ["fedavg", "wecfl"])
def test_rows_say_what_the_client_that_released_most_has_released(
    name, federation, tmp_path, monkeypatch
):
    monkeypatch.setattr(Privacy, "epsilon", lambda self, releases: 10.0 * releases)
    seen = []
    setup = federation(name)
    whole = setup.run(3, on_round=lambda state, record: seen.append(state.most_releases))
    continued = setup.run(3, state=setup.run(1, planned_rounds=3))
    for run in (whole, continued):
        assert [row["epsilon"] for row in run.rows()] == [10.0 * r["releases"] for r in run.rows()]
    assert [row["releases"] for row in whole.rows()] == seen
    folder = whole.save(tmp_path / "saved")
    saved = rows.read(folder / "run" / "seed-0" / "metrics.jsonl")
    assert [row["releases"] for row in saved] == seen
    assert "releases" not in federation(name, privacy=None).run(1).rows()[0]


def test_epsilon_is_unknown_without_the_accountant(monkeypatch):
    monkeypatch.setattr("bcfl.executors.privacy.find_spec", lambda name: None)
    assert privacy_columns({"a": 2, "b": 1}, Privacy()) == {"releases": 2, "epsilon": None}


def means(run):
    return torch.stack([m.mean(run.model) for h in run.hypotheses for m in h.clusters])


@pytest.mark.parametrize(
    "name", ["fedavg", "ifca", "wecfl", "bcfl-g", "bcfl-mht-3", "bcfl-race-2", "ifca-finetune"]
)
def test_releases_are_those_that_the_clients_were_asked_for(name, federation):
    setup = federation(name)
    run = setup.run(3)
    counts = Counter()

    @dataclass
    class Counting:
        executor: object

        def answer(self, requests, models, round):
            for request in requests:
                trains = isinstance(request, Train)
                if trains or (isinstance(request, Score) and request.view != "test"):
                    counts[request.client] += 1 if trains else len(request.models)
            return self.executor.answer(requests, models, round)

    federation(name).run(3, executor=Counting(setup.executor_of(3)))
    assert run.state.releases == counts
    assert sum(counts.values()) == sum(
        n for record in run.records for n in record.ledger.releases.values()
    )
    assert torch.isfinite(means(run)).all()


@pytest.mark.parametrize("executor", ["batched", "processes"])
def test_executors_add_the_same_noise(executor, federation):
    arguments = {"privacy": Privacy(clip=3.0)}
    loop, other = (
        federation("ifca", executor=name, **arguments).run(2) for name in ("loop", executor)
    )
    torch.testing.assert_close(means(loop), means(other), rtol=1e-4, atol=1e-4)
    plain = federation("ifca", executor="loop", privacy=None).run(2)
    assert (means(loop) - means(plain)).abs().max() > 0.1


def test_a_resumed_run_has_the_same_bits_and_releases(federation, tmp_path):
    whole, begun = federation("ifca").run(4), federation("ifca").run(2, planned_rounds=4)
    state = checkpoint.load(checkpoint.save(begun.state, tmp_path))
    resumed = federation("ifca").run(4, state=state)
    assert torch.equal(means(whole), means(resumed))
    assert whole.state.releases.keys() == resumed.state.releases.keys()


def batch_norm():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


@pytest.mark.parametrize(
    ("name", "model", "text"),
    [
        ("fedavg", small(batch_norm), "running statistics of 'small' cannot be randomised"),
        ("centralised", None, "pools the clients' samples; methods such as fedavg"),
        ("apd", None, "that stay with clients cannot be randomised; methods such as fedavg"),
        ("fedsoft", None, "best_counts has no stated sensitivity"),
        ("faacl", None, "support has no stated sensitivity"),
    ],
)
def test_what_is_not_covered_ends_the_run(name, model, text, federation):
    with pytest.raises(ValueError, match=f"privacy: .*{text}"):
        federation(name, model).run(2)


def test_curvatures_are_refused(federation):
    setup = federation("bcfl-g", privacy=None)
    method = methods.build("bcfl-g", num_clusters=2, objective=TRAINING)
    with pytest.raises(ValueError, match="curvature 'ggn' has no stated sensitivity"):
        Federation(setup.clients, small(), method, privacy=Privacy())


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("default", {}, r"split_loss .* set belief_temperature to a number, .* curvature 'ggn' .*"),
        ("default", {"curvature": "samples"}, r"split_loss .* set belief_temperature to a number"),
        ("bcfl-g", {"evidence": "joint", "temperature": 1.0}, r"evidence .* set evidence to 'sep"),
        ("bcfl-asym", {}, r"evidence has no stated sensitivity, [^;]*; methods such as fedavg"),
        ("fedsoft", {}, r"best_counts has no stated"),
        ("faacl", {}, r"support has no stated"),
        ("fedweit", {}, r"blocks of .* that stay with clients"),
    ],
)
def test_what_is_not_covered_is_refused_before_a_run(name, options, text, federation):
    clients = federation("fedavg").clients
    given = methods.applicable(name, {"num_clusters": 2, "objective": TRAINING})
    method = methods.build(name, **given, **options)
    with pytest.raises(ValueError, match=f"^privacy: {text}"):
        Federation(clients, small(), method, privacy=Privacy())


@pytest.mark.parametrize(
    ("option", "value"),
    [("clip", 0.0), ("noise_multiplier", -1.0), ("loss_bound", math.inf), ("delta", 1.0)],
)
def test_values_out_of_range_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} must"):
        Privacy(**{option: value})
