"""BatchNorm takes clients of one sample and last batches of one, and both executors agree.

Reported to neighbouring projects: a batch of one sample ends the training of networks with it.
"""

import pytest
import torch
from torch import nn

from bcfl import ClientData

SIZES = (1, 1, 2, 30, 30, 33)  # 33 leaves a batch of one behind


@pytest.mark.parametrize("sizes", [(30,) * 6, SIZES], ids=["equal", "one-sample"])
@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": None}, {"affine": False}],
    ids=["default", "cumulative", "no-weights"],
)
@pytest.mark.parametrize("name", ["fedavg", "bcfl-g"])
def test_executors_agree_on_parameters_and_statistics(
    arrays, mlp, federation, parameters, sizes, options, name
):
    def network():
        return nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8, **options), nn.ReLU(), nn.Linear(8, 2)
        )

    clients = [
        ClientData.from_arrays(f"c{index}", (x[:size], y[:size]), (x[33:], y[33:]), group)
        for index, (size, (x, y, group)) in enumerate(zip(sizes, arrays(6), strict=True))
    ]
    runs = [
        federation(clients, mlp(network), name, executor=executor).run(rounds=2)
        for executor in ("loop", "batched")
    ]
    torch.testing.assert_close(*map(parameters, runs), rtol=1e-3, atol=1e-4)
    buffers = [run.hypotheses.best.clusters[0].buffers(run.model) for run in runs]
    torch.testing.assert_close(*buffers, rtol=1e-3, atol=1e-4)
    assert all(bool(torch.isfinite(values).all()) for values in (*buffers, parameters(runs[0])))


@pytest.mark.parametrize("name", ["fedavg", "bcfl-g"])
def test_statistics_of_the_batch_at_hand_are_refused(clients, mlp, federation, name):
    """Predictions would depend on the other samples, and one alone has none."""

    def network():
        norm = nn.BatchNorm1d(8, track_running_stats=False)
        return nn.Sequential(nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, 2))

    with pytest.raises(ValueError, match=r"more than 1 value per channel|running|BatchNorm"):
        federation(clients(), mlp(network), name)
