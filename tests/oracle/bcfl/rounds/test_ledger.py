"""Work and bytes of tiny runs, counted by hand."""

import numpy as np
import pytest

import bcfl
from bcfl import methods
from bcfl.policies import LikelihoodAssociation
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Score, Train
from bcfl.rounds.round import RoundConfig, server_round
from bcfl.trackers import Exact
from experiments.models import linear
from tests.recipes import built

MODEL = linear(3, 2)  # 3 x 2 weights and 2 offsets: 8 numbers, 32 bytes
BYTES = 32
OBJECTIVE = Objective(local_steps=2, batch_size=4)


def three_clients():
    random = np.random.default_rng(0)
    return [
        bcfl.ClientData.from_arrays(name, (random.normal(size=(6, 3)), random.integers(2, size=6)))
        for name in "abc"
    ]


def ledgers(method, rounds, **options):
    clients = options.pop("clients", three_clients())
    one = bcfl.Federation(clients, MODEL, method, device="cpu", **options)
    return [record.ledger for record in one.run(rounds).records]


def counts(ledger):
    return {
        "exchanges": ledger.exchanges,
        "scores": (ledger.scores_requested, ledger.scores_run),
        "trainings": (ledger.trainings_requested, ledger.trainings_run),
        "bytes": (ledger.bytes_down, ledger.bytes_up),
    }


def exact(**objective):
    policy = LikelihoodAssociation(
        num_clusters=2,
        objective=Objective(local_steps=2, curvature="ggn", **objective),
        temperature=1.0,
    )
    return bcfl.Method(
        policy=policy, tracker=Exact(), aggregation=bcfl.Aggregation(memory="accumulate")
    )


def test_fedavg():
    """Describe and train, then train alone; a model, and eight bytes for the number of samples."""
    first, second = ledgers(methods.build("fedavg", objective=OBJECTIVE), 2)
    work = {"scores": (0, 0), "trainings": (3, 3), "bytes": (3 * BYTES, 3 * (BYTES + 8))}
    assert counts(first) == {"exchanges": 2, **work}
    assert counts(second) == {"exchanges": 1, **work}


def test_ifca():
    """Both models go to each client once; the client trains from one that it already has."""
    settings = dict(num_clusters=2, objective=OBJECTIVE)
    first, *_ = ledgers(methods.build("ifca", **settings), 2)
    assert counts(first) == {
        "exchanges": 3,
        "scores": (6, 6),
        "trainings": (3, 3),
        "bytes": (6 * BYTES, 6 * 8 + 3 * (BYTES + 8)),
    }


def test_exact_tracker_with_three_clients_and_two_clusters():
    """8 associations share 6 trainings. Then there are 16 models: each cluster fed by any subset.

    The second round asks for 8 x 6 scores and 64 x 3 trainings; 16 x 3 of each are distinct. The
    2 models without trainings are those of the first round, so their 2 x 3 scores are known.
    """
    first, second = ledgers(exact(), 2)
    assert counts(first) == {
        "exchanges": 3,
        "scores": (6, 6),
        "trainings": (24, 6),
        "bytes": (6 * BYTES, 6 * 8 + 6 * (2 * BYTES + 8)),
    }
    assert counts(second) == {
        "exchanges": 2,
        "scores": (48, 42),
        "trainings": (192, 48),
        "bytes": (48 * BYTES, 42 * 8 + 48 * (2 * BYTES + 8)),
    }


def test_a_prior_term_sends_precisions_too():
    """Once for each client and model that it trains from."""
    first, _ = ledgers(exact(prior_weight=1.0), 2)
    assert first.bytes_down == 6 * BYTES + 6 * BYTES


def test_scoring_a_subset_costs_the_same_messages():
    settings = dict(num_clusters=2, objective=OBJECTIVE, score_samples=2)
    first, *_ = ledgers(methods.build("ifca", **settings), 1)
    assert (first.scores_run, first.bytes_up) == (6, 6 * 8 + 3 * (BYTES + 8))


def test_two_hypotheses_of_one_client_apart():
    """The two best associations differ in one client: 6 trainings asked, 4 done."""
    settings = dict(num_clusters=2, objective=OBJECTIVE, curvature="samples")
    first, *_ = ledgers(methods.build("bcfl-mh-2", **settings), 1)
    assert (first.trainings_requested, first.trainings_run) == (6, 4)
    assert first.bytes_up == 6 * 8 + 4 * (BYTES + 8)


@pytest.mark.parametrize(("name", "hypotheses"), [("bcfl-g", 1), ("bcfl-c-2", 1), ("bcfl-mh-2", 2)])
def test_formulas_of_bcfl(name, hypotheses):
    """BCFL, appendix B: K C M weights and models of size m K M, here sent to each client.

    With this seed no cluster of the first round is empty and keeps its model. The paper leaves out
    the weights of BCFL-G, whose clients choose themselves; here the server does.
    """
    clusters, clients = 2, 3
    settings = dict(num_clusters=clusters, objective=OBJECTIVE, curvature="samples")
    _, second = ledgers(methods.build(name, **settings), 2, seed=4)
    models = clusters * hypotheses
    assert second.scores_requested == second.scores_run == models * clients
    assert second.bytes_down == clients * models * BYTES
    assert second.bytes_up == models * clients * 8 + second.trainings_run * (BYTES + 8)


@pytest.mark.filterwarnings("ignore::bcfl.rounds.UntrainedWarning")
def test_clients_that_drop_out_send_nothing():
    (ledger,) = ledgers(methods.build("fedavg", objective=OBJECTIVE), 1, drop_out=1.0)
    assert (ledger.trainings_requested, ledger.trainings_run, ledger.bytes_up) == (3, 3, 0)
    assert ledger.bytes_down == 3 * BYTES
    assert len(ledger.failures) == 3


@pytest.mark.parametrize("name", ["ifca", "wecfl", "bcfl-g", "bcfl-c-4", "bcfl-mh-5", "bcfl-exact"])
def test_against_recorded_messages_between_server_and_clients(name):
    """Distinct (client, model) pairs and trainings, counted on the wire in every round."""
    method = built(name, num_clusters=2, objective=OBJECTIVE, temperature=3.0)
    one = bcfl.Federation(three_clients(), MODEL, method, device="cpu")
    heard = []

    class Listener:
        def answer(self, requests, models, round):
            heard.extend(requests)
            return one.engine.answer(requests, models, round)

    state = one.initial_state()
    for _ in range(3):
        heard.clear()
        setting = RoundConfig(seed=0, evaluate=False)
        state, record = server_round(method, MODEL, Listener(), state, setting)
        scored = [(r.client, key) for r in heard if isinstance(r, Score) for key in r.models]
        trained = [(r.client, r.start) for r in heard if isinstance(r, Train)]
        assert len(set(scored)) == len(scored) == record.ledger.scores_run
        assert len(set(trained)) == len(trained) == record.ledger.trainings_run
        assert record.ledger.bytes_down == BYTES * len({*scored, *trained})
        vectors = 1 if name in ("ifca", "wecfl") else 2
        up = 8 * len(scored) + len(trained) * (8 + vectors * BYTES)
        assert record.ledger.bytes_up == up
