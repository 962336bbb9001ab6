import pytest
import torch
from torch import nn

from bcfl import Model
from bcfl.architecture.dropout import with_dropout


def network():
    body = nn.Sequential(nn.Linear(3, 50), nn.ReLU(), nn.Linear(50, 50), nn.Tanh())
    return nn.Sequential(body, nn.Linear(50, 2))


@pytest.fixture
def model():
    return Model(name="network", build=network, input_shape=(3,), num_outputs=2)


def test_parameters_stay_where_they_were(model):
    dropped = with_dropout(model, 0.5)
    assert dropped.layout == model.layout
    for ours, theirs in zip(dropped.initial(3), model.initial(3), strict=True):
        assert torch.equal(ours, theirs)
    assert dropped.name == "network-dropout"


def test_each_activation_is_dropped_in_training_alone(model):
    module = with_dropout(model, 0.5).module()
    assert sum(isinstance(part, nn.Dropout) for part in module.modules()) == 2
    plain = model.module()
    plain.load_state_dict(dict(zip(plain.state_dict(), module.state_dict().values(), strict=True)))
    inputs = torch.ones(4, 3)
    assert torch.equal(module.eval()(inputs), plain.eval()(inputs))
    kept = module.train()[0][1](torch.ones(1000))
    assert set(kept.tolist()) == {0.0, 2.0}


def test_a_network_without_activations_stays(linear):
    module = with_dropout(linear, 0.5).module()
    assert not any(isinstance(part, nn.Dropout) for part in module.modules())


def test_rates_are_shares(model):
    with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\), got 1"):
        with_dropout(model, 1)
