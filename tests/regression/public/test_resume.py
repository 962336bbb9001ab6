"""Every method goes on from a checkpoint to the bits of a run that was never stopped.

Reported to neighbouring projects: the clients' own state is lost between rounds.
"""

import pytest
import torch

from bcfl import checkpoint

pytestmark = pytest.mark.usefixtures("plain_figures")

NAMES = [
    *("fedavg", "fedprox", "local", "centralised", "fedavg-plus", "ifca", "fesem", "wecfl"),
    *("ocfl-hdbscan", "ocfl-meanshift", "ocfl-affinity", "ocfl-kmeans", "scl", "bcl", "fedgroup"),
    *("faacl", "faacl-h", "c-faacl", "fedsoft", "feddrift", "ewc", "ssgd", "apd", "fedweit"),
    *("bcfl-g", "bcfl-forget", "bcfl-asym", "bcfl-c-2", "bcfl-mh-2", "bcfl-mht-4"),
    *("ifca-cam", "wecfl-cam", "fedavg-finetune", "ifca-con-para", "bcfl-g-con-rep"),
    *("wecfl-con-cks", "bcfl-mht-4-cks", "bcfl-g-w", "fesem-w"),
]


@pytest.mark.parametrize("name", NAMES)
def test_it_goes_on_to_the_same_bits(clients, mlp, federation, parameters, tmp_path, name):
    def prepared():
        return federation(clients(), mlp(hidden=3), name, client_fraction=0.5)

    whole = prepared().run(rounds=3)
    half = prepared().run(rounds=2, planned_rounds=3)
    state = checkpoint.load(checkpoint.save(half.state, tmp_path))
    rest = prepared().run(rounds=3, state=state)
    assert torch.equal(parameters(whole), parameters(rest))
    for ours, theirs in zip(rest.hypotheses, whole.hypotheses, strict=True):
        assert ours.association.labels.tolist() == theirs.association.labels.tolist()
        assert ours.log_weight == theirs.log_weight
