"""What two networks that are summed do to a common residual, in closed form.

One sample, one output, squared loss, two scalars g and t: (1/2)(g + t - y)^2. A phase of S steps
without momentum leaves the share s = (1 - rate)^S of the residual that it sees. One network after
the other leaves s^2 in all; both against the residual as it was leave 2s - 1, whose size is 1 where
training is complete: the residual only changes its sign and never goes away.
"""

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Federation, Model, Objective
from bcfl.methods import build

TARGET, ROUNDS = 5.0, 6


def residuals(update, rate, steps):
    """After each round, the first of which is the warm-up of the shared network.

    There are two clients, since there are two clusters; they are the same, so both are in one.
    """
    model = Model(
        name="scalar",
        build=lambda: nn.Linear(1, 1, bias=False),
        input_shape=(1,),
        num_outputs=1,
        likelihood="gaussian",
    )
    alike = [
        ClientData.from_arrays(name, (np.ones((1, 1)), np.full((1, 1), TARGET))) for name in "ab"
    ]
    objective = Objective(local_steps=steps, batch_size=1, learning_rate=rate, momentum=0.0)
    settings = dict(num_clusters=2, objective=objective, update=update, warm_up=1)
    federation = Federation(
        alike, model, build("ifca-cam", **settings), device="cpu", dtype=torch.float64,
        evaluate=False,
    )  # fmt: skip
    left, state = [], None
    for stop in range(1, ROUNDS + 1):
        run = federation.run(stop, state=state, planned_rounds=ROUNDS)
        state = run.state
        label = int(run.hypotheses.best.association.labels[0])
        left.append(float(run.hypotheses.best.clusters[label].mean(run.model).sum()) - TARGET)
    return np.array(left)


@pytest.mark.parametrize(("rate", "steps"), [(0.1, 3), (0.3, 10)])
def test_what_a_round_leaves_of_the_residual(rate, steps):
    share = (1 - rate) ** steps
    factors = {
        "alternating": share**2,
        "simultaneous": 2 * share - 1,
        "joint": (1 - 2 * rate) ** steps,
    }
    for update, factor in factors.items():
        left = residuals(update, rate, steps)
        np.testing.assert_allclose(left[2:], left[1:-1] * factor, rtol=1e-9, atol=1e-12)
