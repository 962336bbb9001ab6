import pytest
import torch
from torch import nn

from posteriors.curvature.diagonal import diagonal_curvature
from posteriors.curvature.layers.rules import UnsupportedLayerError

CLASSES = torch.tensor([0, 1, 2, 1])


@pytest.fixture
def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield nn.Sequential(
            nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.ReLU(), nn.Linear(4, 3)
        )


@pytest.fixture
def inputs():
    return torch.randn(4, 5, generator=torch.Generator().manual_seed(1))


def test_one_logistic_layer_by_hand():
    """For logits W x the curvature of W_ci is the sum of p_c (1 - p_c) x_i²."""
    layer = nn.Linear(2, 3, bias=False).double()
    x = torch.tensor([[1.0, 2.0], [-3.0, 0.5]], dtype=torch.float64)
    p = layer(x).detach().softmax(1)
    expected = (p * (1 - p)).T @ x.square()
    actual = diagonal_curvature(layer, x, torch.tensor([0, 2]))
    torch.testing.assert_close(actual, expected.flatten())


def test_order_is_that_of_the_parameters(network, inputs):
    whole = diagonal_curvature(network, inputs, CLASSES)
    sizes = [parameter.numel() for parameter in network.parameters()]
    assert sizes == [20, 4, 4, 4, 12, 3]
    parts = dict(
        zip([name for name, _ in network.named_parameters()], whole.split(sizes), strict=True)
    )
    p = network.eval()(inputs).detach().softmax(1)
    torch.testing.assert_close(parts["4.bias"], (p * (1 - p)).sum(0))


def test_curvature_adds_up_over_samples(network, inputs):
    whole = diagonal_curvature(network, inputs, CLASSES)
    halves = [
        diagonal_curvature(network, inputs[part], CLASSES[part])
        for part in (slice(0, 1), slice(1, 4))
    ]
    torch.testing.assert_close(whole, halves[0] + halves[1])


def test_gauss_newton_ignores_targets_and_empirical_fisher_does_not(network, inputs):
    other = torch.tensor([2, 2, 0, 0])
    gauss_newton = [diagonal_curvature(network, inputs, y) for y in (CLASSES, other)]
    fisher = [
        diagonal_curvature(network, inputs, y, kind="empirical_fisher") for y in (CLASSES, other)
    ]
    assert torch.equal(*gauss_newton)
    assert not torch.allclose(*fisher)


@pytest.mark.parametrize("likelihood", ["categorical", "gaussian", "bernoulli"])
def test_drawn_targets_depend_on_the_generator_alone(network, inputs, likelihood):
    targets = [CLASSES, torch.tensor([2, 2, 0, 0])]
    if likelihood != "categorical":
        targets = [torch.zeros(4, 3), torch.ones(4, 3)]

    def draw(seed, values, chunk_bytes):
        generator = torch.Generator().manual_seed(seed)
        return diagonal_curvature(
            network, inputs, values, kind="mc_ggn", likelihood=likelihood,
            chunk_bytes=chunk_bytes, generator=generator,
        )  # fmt: skip

    first = draw(0, targets[0], 1)
    torch.testing.assert_close(draw(0, targets[1], 2**25), first)
    assert not torch.allclose(draw(1, targets[0], 1), first)


def test_the_module_is_left_as_it_was(network, inputs):
    network.train()
    network[1].eval()
    network[0].weight.grad = torch.full((4, 5), 7.0)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    random_state = torch.random.get_rng_state()
    diagonal_curvature(network, inputs, CLASSES)
    assert [layer.training for layer in network] == [True, False, True, True, True]
    assert network.training
    assert bool((network[0].weight.grad == 7.0).all())
    assert network[4].weight.grad is None
    assert all(torch.equal(state[name], value) for name, value in network.state_dict().items())
    assert torch.equal(random_state, torch.random.get_rng_state())
    assert not network[0]._forward_hooks


def test_the_mode_is_restored_after_an_error(network):
    network.train()
    with pytest.raises(RuntimeError):
        diagonal_curvature(network, torch.zeros(4, 9), CLASSES)
    assert all(layer.training for layer in network.modules())
    assert not any(layer._forward_hooks for layer in network.modules())


def test_train_and_eval_mode_give_the_same(network, inputs):
    in_train = diagonal_curvature(network.train(), inputs, CLASSES)
    assert torch.equal(in_train, diagonal_curvature(network.eval(), inputs, CLASSES))


def test_frozen_parameters_get_zeros_in_their_place(network, inputs):
    free = diagonal_curvature(network, inputs, CLASSES)
    network[0].requires_grad_(False)
    network[4].bias.requires_grad_(False)
    frozen = diagonal_curvature(network, inputs, CLASSES)
    expected = free.clone()
    expected[:24] = 0
    expected[-3:] = 0
    torch.testing.assert_close(frozen, expected)
    assert not network[0].weight.requires_grad
    network.requires_grad_(False)
    assert diagonal_curvature(network, inputs, CLASSES).tolist() == [0.0] * 47


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_it_works_where_gradients_are_switched_off(network, inputs, context):
    expected = diagonal_curvature(network, inputs, CLASSES)
    with context():
        actual = diagonal_curvature(network, inputs * 1, CLASSES)
    assert torch.equal(actual, expected)
    assert not actual.requires_grad


def test_a_layer_that_is_not_called_gets_zeros(inputs):
    class Spare(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.spare = nn.Linear(5, 3), nn.Linear(5, 2)

        def forward(self, x):
            return self.used(x)

    curvature = diagonal_curvature(Spare(), inputs, CLASSES)
    assert curvature[18:].tolist() == [0.0] * 12
    assert bool((curvature[15:18] > 0).all())


class Custom(nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.layer, self.other = nn.Linear(5, 5), nn.Linear(5, 3)
        self.run = forward

    def forward(self, x):
        return self.run(self, x)


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda m, x: m.other(m.layer(m.layer(x))), r"'layer' \(.*\) is called twice"),
        (lambda m, x: m.other(x @ m.layer.weight), "'layer' are used without calling"),
        (
            lambda m, x: m.other(m.layer(x.repeat(2, 1)))[: len(x)],
            "'layer' sees 6 rows for 3 samples",
        ),
        (lambda m, x: m.other(m.layer(x)).detach(), "carry no gradient"),
    ],
)
def test_uses_that_no_rule_covers_are_refused(inputs, forward, message):
    with pytest.raises(UnsupportedLayerError, match=message):
        diagonal_curvature(Custom(forward), inputs, CLASSES)


def test_an_input_changed_in_place_is_refused(inputs):
    def forward(module, x):
        hidden = module.layer(x).sigmoid()
        return module.other(hidden) + hidden.mul_(2).sum(1, keepdim=True)

    with pytest.raises((UnsupportedLayerError, RuntimeError), match=r"in.?place"):
        diagonal_curvature(Custom(forward), inputs, CLASSES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "hessian"}, "kind must be one of ggn, mc_ggn, empirical_fisher, got 'hessian'"),
        ({"kind": "mc_ggn"}, "generator must be given for kind 'mc_ggn'"),
        ({"likelihood": "poisson"}, "likelihood must be one of categorical, gaussian, bernoulli"),
        ({"targets": CLASSES[:3]}, "same number of samples"),
        ({"inputs": torch.zeros(0, 5), "targets": CLASSES[:0]}, "at least one"),
        ({"targets": torch.tensor([0, 1, 3, 0])}, "targets must lie in 0 to 2, found 0 to 3"),
        ({"targets": torch.zeros(4)}, "targets must be class indices"),
        ({"likelihood": "gaussian"}, "targets must have the outputs' shape"),
        ({"module": nn.Conv2d(5, 3, 1), "inputs": torch.zeros(4, 5, 2, 2)}, "samples, outputs"),
    ],
)
def test_bad_arguments_are_named(network, inputs, change, message):
    arguments = {"module": network, "inputs": inputs, "targets": CLASSES} | change
    with pytest.raises(ValueError, match=message):
        diagonal_curvature(**arguments)
