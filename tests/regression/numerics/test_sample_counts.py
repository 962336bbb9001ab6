"""A number of samples that no client can have is an invalid answer of that client, no more."""

from dataclasses import replace

import pytest

from bcfl.protocol.answers import ClientInfo, Trained
from bcfl.protocol.statistics.loss import LossSum


def counting(kind, number):
    """Report a number of samples in one kind of answer."""

    def change(answer):
        if isinstance(answer, ClientInfo) and kind == "info":
            return replace(answer, num_samples=dict.fromkeys(answer.num_samples, number))
        if isinstance(answer, Trained) and kind == "trained":
            return replace(answer, num_samples=number)
        if isinstance(answer, dict) and kind == "loss":
            return {
                key: replace(score, num_samples=number) if isinstance(score, LossSum) else score
                for key, score in answer.items()
            }
        return answer

    return change


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(2**63, id="beyond int64"),
        pytest.param(10**20, id="beyond uint64"),
        pytest.param(10**400, id="beyond float64"),
    ],
)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fedavg", "trained"),
        ("wecfl", "trained"),
        ("bcfl-mht-4", "trained"),
        ("feddrift", "trained"),
        ("bcfl-g", "loss"),
        ("bcfl-c-3", "loss"),
        ("fedsoft", "info"),
    ],
)
def test_round_goes_on(make_clients, build_method, run_tampered, model, name, kind, number):
    recipe = build_method(name, num_clusters=2, local_steps=2)
    hypotheses, records = run_tampered(make_clients(6), recipe, counting(kind, number), rounds=2)
    assert len(records) == 2
    for posterior in hypotheses.best.clusters:
        assert posterior.mean(model).isfinite().all()
