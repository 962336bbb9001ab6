import numpy as np
import pytest
import torch
from torch import nn

from bcfl import BlockSpec, Model, methods
from bcfl.architecture.layout import Layout
from bcfl.rounds import initial_state


def test_a_layout_lists_parameters_and_running_statistics(batch_norm):
    layout = batch_norm.layout
    assert [(s.name, s.shape, s.start, s.stop) for s in layout.parameters] == [
        ("0.weight", (4, 3), 0, 12),
        ("0.bias", (4,), 12, 16),
        ("1.weight", (4,), 16, 20),
        ("1.bias", (4,), 20, 24),
        ("3.weight", (2, 4), 24, 32),
        ("3.bias", (2,), 32, 34),
    ]
    assert [(s.name, s.start, s.stop) for s in layout.buffers] == [
        ("1.running_mean", 0, 4),
        ("1.running_var", 4, 8),
    ]
    assert (layout.num_parameters, layout.num_buffers) == (34, 8)


def test_a_module_without_tensors_has_an_empty_layout():
    layout = Layout.of(nn.ReLU())
    assert (layout.num_parameters, layout.num_buffers) == (0, 0)


def test_initial_networks_depend_on_the_seed_alone(batch_norm):
    torch.manual_seed(1)
    first, buffers = batch_norm.initial(5)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    again, _ = batch_norm.initial(5)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.equal(first, batch_norm.initial(6)[0])
    assert buffers.tolist() == [0.0] * 4 + [1.0] * 4


def test_splitting_a_network_and_joining_its_blocks_gives_it_back():
    blocks = (
        BlockSpec("ends", "cluster", ("0.", "3.")),
        BlockSpec("middle", "global", ("1.",)),
    )
    model = Model(
        name="net",
        build=lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)),
        input_shape=(3,),
        num_outputs=2,
        blocks=blocks,
    )
    parameters, buffers = torch.arange(34.0), torch.arange(100.0, 108.0)
    parts = model.split(parameters, buffers)
    assert parts["ends"][0].tolist() == [*range(16), *range(24, 34)]
    assert parts["ends"][1].tolist() == []
    assert parts["middle"][0].tolist() == list(range(16, 24))
    assert parts["middle"][1].tolist() == list(range(100, 108))
    assert torch.equal(model.join({n: p for n, (p, _) in parts.items()}), parameters)
    assert torch.equal(model.join_buffers({n: b for n, (_, b) in parts.items()}), buffers)


@pytest.mark.parametrize(
    ("prefixes", "owners"), [((("0.",), ("9.",)), r"\[\]"), ((("0.", "2."), ("2.",)), "'a', 'b'")]
)
def test_a_parameter_in_no_block_or_in_two_is_refused(prefixes, owners):
    model = Model(
        name="net",
        build=lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        input_shape=(3,),
        num_outputs=2,
        blocks=(BlockSpec("a", "cluster", prefixes[0]), BlockSpec("b", "cluster", prefixes[1])),
    )
    with pytest.raises(
        ValueError, match=f"'2.weight' must belong to exactly one block, got .*{owners}"
    ):
        model.split(torch.zeros(26), torch.empty(0))


def test_a_model_says_what_it_is(linear):
    assert repr(linear) == "Model(linear: (3,) -> 2, categorical, 8 parameters)"


def test_keys_of_initial_models_do_not_depend_on_the_representation(linear, monkeypatch):
    """They seed what follows: another text would be another run."""

    def keys():
        given = linear, ["a"], 0, torch.device("cpu"), torch.float32
        state = initial_state(methods.build("fedavg"), *given)
        return [cluster.key for cluster in state.hypotheses.best.clusters]

    before = keys()
    monkeypatch.setattr(Model, "__repr__", lambda _: "another")
    assert keys() == before


def test_a_joined_vector_keeps_its_type(shared_body):
    parameters = torch.arange(26, dtype=torch.float64)
    parts = {n: p for n, (p, _) in shared_body.split(parameters, torch.empty(0)).items()}
    assert shared_body.join(parts).dtype == torch.float64
    assert np.array_equal(shared_body.join(parts), np.arange(26))


def test_inspecting_a_model_keeps_the_global_random_state(shared_body):
    before = torch.get_rng_state()
    assert shared_body.layout.num_parameters == 26
    assert repr(shared_body.module(3)).startswith("Sequential")
    assert torch.equal(before, torch.get_rng_state())


def test_unknown_scopes_likelihoods_and_repeated_blocks_are_refused():
    with pytest.raises(
        ValueError, match="scope must be 'cluster', 'global' or 'client', got 'local'"
    ):
        BlockSpec("head", "local")
    with pytest.raises(ValueError, match="'gaussian', 'bernoulli', got 'softmax'"):
        Model(name="net", build=nn.Identity, input_shape=(3,), num_outputs=2, likelihood="softmax")
    with pytest.raises(ValueError, match=r"distinct names, at least one, got \['a', 'a'\]"):
        Model(
            name="net",
            build=nn.Identity,
            input_shape=(3,),
            num_outputs=2,
            blocks=(BlockSpec("a"), BlockSpec("a")),
        )
    with pytest.raises(ValueError, match=r"distinct names, at least one, got \[\]"):
        Model(name="net", build=nn.Identity, input_shape=(3,), num_outputs=2, blocks=())
