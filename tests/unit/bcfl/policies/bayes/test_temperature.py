import numpy as np
import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import LikelihoodAssociation
from bcfl.policies.bayes.temperature import (
    HIGHEST,
    LOWEST,
    RATIO_TO_HALVES,
    fitted_belief_temperature,
    fitted_temperature,
)
from bcfl.protocol.statistics.loss import LossSum
from tests.recipes import built


def explained(temperature, losses, held_out):
    """Log of the product over clients of the sum over clusters of weight times likelihood."""
    weights = np.exp(-(losses - losses.min(axis=1, keepdims=True)) / temperature)
    weights /= weights.sum(axis=1, keepdims=True)
    shift = held_out.min(axis=1)
    likelihood = np.exp(shift[:, None] - held_out)
    return (np.log((weights * likelihood).sum(axis=1)) - shift).sum()


@pytest.mark.parametrize("seed", range(12))
def test_no_temperature_of_a_dense_grid_is_better(seed):
    random = np.random.default_rng(seed)
    truth = random.normal(scale=2.0, size=(30, 3))
    losses = 90 * truth + random.normal(scale=random.uniform(20, 300), size=truth.shape) + 500
    held_out = 3 * truth + random.normal(scale=1.5, size=truth.shape) + 20
    found = fitted_temperature(losses, held_out)
    grid = np.geomspace(LOWEST, HIGHEST, 1001)
    best = max(explained(t, losses, held_out) for t in grid)
    assert explained(found, losses, held_out) >= best - 1e-3
    assert LOWEST <= found <= HIGHEST


def test_agreement_is_cold_and_contradiction_is_hot():
    losses = np.array([[1.0, 9.0], [8.0, 2.0], [3.0, 7.0]])
    assert LOWEST <= fitted_temperature(losses / 100, losses) < 1.01 * LOWEST
    assert HIGHEST >= fitted_temperature(losses, -losses) > 0.99 * HIGHEST


@pytest.mark.parametrize("factor", [0.3, 4.0, 25.0])
def test_the_temperature_has_the_unit_of_the_training_loss(factor):
    random = np.random.default_rng(3)
    losses, held_out = random.normal(scale=30, size=(50, 2)), random.normal(scale=2, size=(50, 2))
    held_out += losses / 40
    once = fitted_temperature(losses, held_out)
    assert 1 < once < 300
    assert fitted_temperature(factor * losses, held_out) == pytest.approx(factor * once, rel=1e-2)


def test_what_is_the_same_for_all_clusters_changes_nothing():
    random = np.random.default_rng(4)
    losses, held_out = random.normal(scale=9, size=(2, 40, 3))
    once = fitted_temperature(losses, held_out)
    shifts = random.normal(scale=100, size=(2, 40, 1))
    again = fitted_temperature(losses + shifts[0], held_out + shifts[1])
    assert again == pytest.approx(once, rel=1e-2)


@pytest.mark.parametrize(
    ("losses", "held_out"),
    [
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (np.ones((4, 1)), np.ones((4, 1))),
        (np.array([[1.0, 5.0], [7.0, 2.0]]), np.zeros((2, 2))),
        (np.ones((2, 2)), np.array([[1.0, 5.0], [7.0, 2.0]])),
        (np.array([[1.0, 5.0], [7.0, 7.0]]), np.array([[3.0, 3.0], [1.0, 2.0]])),
    ],
    ids=["no client", "one cluster", "no validation samples", "equal models", "nothing in common"],
)
def test_with_nothing_to_choose_by_it_is_one(losses, held_out):
    assert fitted_temperature(losses, held_out) == 1.0


def test_a_policy_fits_weighs_and_reports(linear, newborn, context):
    names = ("a", "b", "c")
    train = {"a": (40.0, 60.0), "b": (70.0, 30.0), "c": (50.0, 55.0)}
    tested = {"a": (4.0, 6.5), "b": (9.0, 2.0), "c": (6.0, 4.0)}
    clusters = (newborn(linear, 0), newborn(linear, 1))
    parent = Hypothesis(clusters=clusters, association=Association.unseen(names, 2))
    policy = LikelihoodAssociation(num_clusters=2, objective=Objective(), temperature="auto")

    def answer(r):
        table = train if r.view == "train" else tested
        return {p.key: LossSum(table[r.client][i], 0.0, 10) for i, p in enumerate(clusters)}

    steps = policy.associate(parent, context(names, candidates_per_parent=None))
    ranking, exchanges = drive(steps, answer, return_exchanges=True)
    requested = [[(r.client, r.view) for r in exchange.requests] for exchange in exchanges]
    assert requested == [[(n, view) for n in names] for view in ("train", "validation")]
    losses, held_out = (np.array([t[n] for n in names]) for t in (train, tested))
    temperature = fitted_temperature(losses, held_out)
    assert ranking.facts == {"temperature": temperature}
    first, second = list(ranking)[:2]
    assert first.association.labels.tolist() == [0, 1, 0]
    assert second.association.labels.tolist() == [0, 1, 1]
    assert first.log_weight - second.log_weight == pytest.approx(5 / temperature)


@pytest.mark.parametrize("name", ["bcfl-g", "bcfl-mh-2", "bcfl-mht-2"])
def test_zero_is_no_temperature_of_any_method(name):
    with pytest.raises(ValueError, match=r"temperature must be .* positive.*, got 0\.0"):
        built(name, num_clusters=2, temperature=0.0)


@pytest.mark.parametrize(
    ("name", "temperature"), [("bcfl-g", "mean"), ("bcfl-mh-2", "mean"), ("bcfl-mht-2", 1.0)]
)
def test_temperatures_of_methods_by_default(name, temperature):
    assert built(name, num_clusters=2).policy.temperature == temperature
    assert built(name, num_clusters=2, temperature=3.0).policy.temperature == 3.0


def split(sharpness, clients=400, clusters=3, seed=0):
    """Halves of losses whose differences between clusters are right at a temperature."""
    random = np.random.default_rng(seed)
    first = random.normal(0, 3, (clients, clusters))
    chosen = (-first / sharpness + random.gumbel(size=first.shape)).argmax(axis=1)
    second = np.ones_like(first)
    second[np.arange(clients), chosen] = 0.0
    return first, second


@pytest.mark.parametrize("temperature", [1.0, 2.0, 4.0])
def test_the_belief_temperature_is_that_at_which_one_half_predicts_the_other(temperature):
    first, second = split(temperature)
    both = np.concatenate([first, first]), np.concatenate([second, second])
    grid = np.exp(np.linspace(-2, 4, 2001))
    logs = []
    for value in grid:
        total = 0.0
        for half, other in (both, both[::-1]):
            w = np.exp(-half / value) / np.exp(-half / value).sum(axis=1, keepdims=True)
            total += np.log(w[np.arange(len(w)), other.argmin(axis=1)]).sum()
        logs.append(total)
    best = grid[int(np.argmax(logs))]
    found = fitted_belief_temperature(first, second)
    assert found == pytest.approx(max(1.0, RATIO_TO_HALVES * best), rel=2e-2)


def test_halves_that_agree_give_belief_temperature_1_and_those_that_do_not_a_high_one():
    losses = np.random.default_rng(0).normal(0, 20, (50, 4))
    assert fitted_belief_temperature(losses, losses) == 1.0
    assert fitted_belief_temperature(losses, losses[::-1]) > 20
    assert fitted_belief_temperature(np.zeros((0, 4)), np.zeros((0, 4))) == 1.0
    assert fitted_belief_temperature(np.zeros((5, 1)), np.zeros((5, 1))) == 1.0


def test_the_belief_temperature_does_not_depend_on_what_a_client_adds_to_all_its_losses():
    first, second = split(2.0)
    shift = np.random.default_rng(1).normal(0, 100, (2, 400, 1)).round()
    again = fitted_belief_temperature(first + shift[0], second + shift[1])
    assert again == pytest.approx(fitted_belief_temperature(first, second), rel=1e-6)


def test_clients_without_a_sample_in_each_half_say_nothing_of_beliefs():
    first, second = np.random.default_rng(7).gamma(20.0, size=(2, 12, 3))
    once = fitted_belief_temperature(first, second)
    assert once > 1
    alone, none = np.full((4, 3), [[1.0, 5.0, 9.0]]), np.zeros((4, 3))
    more = fitted_belief_temperature(np.vstack([first, alone]), np.vstack([second, none]))
    assert more == once
    assert fitted_belief_temperature(alone, none) == 1.0
