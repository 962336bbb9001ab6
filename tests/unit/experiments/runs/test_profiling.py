import numpy as np
import pytest

from bcfl import ClientData, Federation, Objective, methods
from experiments.models import mlp
from experiments.runs.profiling import Profile, flops_of_training, matrix_peak, profiled


@pytest.fixture
def clients():
    random = np.random.default_rng(0)
    drawn = [(random.normal(size=(6, 4)), random.integers(0, 2, 6)) for _ in range(3)]
    return [ClientData.from_arrays(f"c{i}", part) for i, part in enumerate(drawn)]


def test_operations_of_a_perceptron():
    """Forwards and the weights' gradients cost alike; the first layer sends nothing back."""
    forward = 2 * (64 * 32 + 32 * 10)
    wanted = 2 * forward + 2 * 32 * 10
    objective = Objective(local_steps=5, batch_size=10)
    found = flops_of_training(mlp(64, 32, 10), (64,), objective, [4, 100])
    assert found == wanted * 5 * (4 + 10) / 2


def test_a_profile_in_words():
    seconds = {"train": 2.0, "score": 1.0, "server": 0.5, "evaluate": 0.5}
    profile = Profile(
        rounds=3,
        seconds=seconds,
        trainings=(40, 10),
        scores=(0, 0),
        megabytes=(1.0, 1.0),
        training_flops=4e9,
        peak=2e10,
    )
    assert profile.achieved == 2e9
    assert profile.in_words == (
        "50% of the time is local training. Training reaches 2.00 GFLOP/s, 10.0% of a large matrix "
        "product; of 10 distinct trainings, 4.0 requests for each."
    )


def test_a_measured_profile(clients):
    method = methods.build("ifca", num_clusters=2, objective=Objective(local_steps=2, batch_size=4))
    federation = Federation(clients, mlp(4, 3, 2), method, device="cpu")
    found = profiled(federation, 2, matrix_peak("cpu", 1, size=16))
    assert found.trainings == (2 * len(clients),) * 2
    assert found.scores[1] == 2 * 2 * len(clients)
    assert found.peak > 0
