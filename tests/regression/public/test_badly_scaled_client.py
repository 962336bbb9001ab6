"""A client that forgot to scale its inputs spoils no scores of the others.

Reported to neighbouring projects: out-of-distribution scores and statistics that one site ruins.
"""

import numpy as np
import pytest

from bcfl import ClientData


@pytest.fixture
def scores(clients, arrays, mlp, federation):
    """Out-of-distribution scores of a healthy client's own samples, and of others."""

    def scores_of(factor, name):
        x, y, group = arrays(8)[2]
        x = factor * x
        own = ClientData.from_arrays("c2", (x[:30], y[:30]), (x[30:], y[30:]), group)
        others = [data for data in clients(8) if data.client != "c2"]
        run = federation([*others, own], mlp(), name).run(rounds=3)
        far = 6 * np.random.default_rng(9).normal(size=(10, 4)).astype(np.float32)
        return [run.predict("c0", inputs).ood_score for inputs in (arrays(8)[0][0][30:], far)]

    return scores_of


@pytest.mark.parametrize("name", ["fedavg", "ifca", "wecfl"])
@pytest.mark.parametrize("factor", [1.0, 10.0, 100.0, 1e4])
def test_scores_of_the_others_still_tell_what_is_far(scores, factor, name):
    near, far = scores(factor, name)
    assert np.ptp(near) > 1e-3
    assert np.median(far) > near.max()
    assert np.median(far) > np.median(near) + 10


def test_a_log_loss_beyond_the_least_probability_is_counted(clients, arrays, mlp, federation):
    """Nats that grow with the scale, where probabilities all round to 0."""
    losses = []
    for factor in (1e3, 1e4):
        x, y, group = arrays(8)[2]
        own = ClientData.from_arrays("c2", (x[:30], y[:30]), (factor * x[30:], 1 - y[30:]), group)
        others = [data for data in clients(8) if data.client != "c2"]
        run = federation([*others, own], mlp(), "fedavg").run(rounds=3)
        losses.append(run.records[-1].evaluations["c2"].nll)
    assert losses[1] == pytest.approx(10 * losses[0], rel=0.05)
