"""Models: layers as published, counts by hand, names and numbers that build them again."""

import pickle

import numpy as np
import pytest
import torch

from experiments import datasets, models
from experiments.datasets import Dataset


def forward(model, inputs, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = model.build().eval()
    with torch.no_grad():
        return module, module(inputs)


def test_mlp_computes_what_its_layers_say():
    model = models.mlp(64, 32, 10)
    inputs = torch.rand(5, 1, 8, 8)
    module, outputs = forward(model, inputs)
    weight0, bias0, weight1, bias1 = (p.detach().numpy() for p in module.parameters())
    hidden = np.maximum(inputs.reshape(5, 64).numpy() @ weight0.T + bias0, 0)
    np.testing.assert_allclose(outputs.numpy(), hidden @ weight1.T + bias1, atol=1e-6)
    assert model.layout.num_parameters == 64 * 32 + 32 + 32 * 10 + 10
    assert (model.name, model.input_shape, model.num_outputs) == ("mlp", (64,), 10)
    assert model.likelihood == "categorical"


def test_mlp_by_shape_and_with_any_number_of_layers():
    assert models.mlp((1, 8, 8), 32, 10).input_shape == (1, 8, 8)
    assert models.mlp(64, 32, 10, input_shape=(1, 8, 8)).input_shape == (1, 8, 8)
    assert models.mlp((1, 8, 8), 10).layout.num_parameters == 650
    deep = models.mlp(4, 5, 6, 7, 3)
    assert [slot.shape for slot in deep.layout.parameters][::2] == [(5, 4), (6, 5), (7, 6), (3, 7)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: models.mlp(64), "number of classes"),
        (lambda: models.mlp(64, 0, 10), "at least 1, got 0"),
        (lambda: models.mlp(64, 3.5, 10), "whole number of at least 1, got 3.5"),
        (lambda: models.mlp(64, 10, input_shape=(1, 8, 9)), r"have 64 elements, got \(1, 8, 9\)"),
        (lambda: models.fashion_cnn(norm="layer"), "'batch', 'group' or 'none', got 'layer'"),
        (lambda: models.fashion_cnn(classes=0), "classes must be a whole number"),
        (lambda: models.linear(0, 1), "inputs"),
        (lambda: models.linear(3, 1, likelihood="poisson"), "'categorical', 'gaussian'"),
    ],
)
def test_sizes_out_of_range(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("norm", "parameters", "buffers"),
    [
        ("batch", 416 + 32 + 12832 + 64 + 15690, 16 + 16 + 32 + 32),
        ("group", 416 + 32 + 12832 + 64 + 15690, 0),
        ("none", 416 + 12832 + 15690, 0),
    ],
)
def test_fashion_cnn_has_the_published_sizes(norm, parameters, buffers):
    model = models.fashion_cnn(norm=norm)
    assert (model.layout.num_parameters, model.layout.num_buffers) == (parameters, buffers)
    _, outputs = forward(model, torch.rand(3, 1, 28, 28))
    assert outputs.shape == (3, 10)
    assert torch.isfinite(outputs).all()


def test_fashion_cnn_layers_in_the_published_order():
    kinds = [type(layer).__name__ for layer in models.fashion_cnn().build()]
    block = ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"]
    assert kinds == [*block, *block, "Flatten", "Linear"]
    plain = [type(layer).__name__ for layer in models.fashion_cnn(norm="none").build()]
    assert plain == [kind for kind in kinds if kind != "BatchNorm2d"]


def test_networks_for_posteriors_keep_no_running_statistics():
    kinds = [type(layer).__name__ for layer in models.build("fashion-cnn-gn", {}).build()]
    assert kinds.count("GroupNorm") == 2
    for model in (models.build("fashion-cnn-gn", {}), models.mlp(64, 32, 10)):
        assert model.layout.num_buffers == 0


def test_linear_model_for_regression():
    model = models.linear(3, 2, likelihood="gaussian")
    module, outputs = forward(model, torch.eye(3))
    weight, bias = (p.detach() for p in module.parameters())
    torch.testing.assert_close(outputs, weight.T + bias)
    assert (model.likelihood, model.num_outputs) == ("gaussian", 2)
    assert models.linear(3, 2, bias=False).layout.num_parameters == 6


ALL = [
    models.mlp(64, 32, 16, 10, input_shape=(1, 8, 8)),
    models.mlp(64, 10),
    models.fashion_cnn(classes=7, norm="group"),
    models.linear(4, 2, likelihood="gaussian", bias=False),
]


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.name)
def test_name_and_config_build_the_model_again(model):
    again = models.build(model.name, model.config)
    assert again.layout == model.layout
    assert again.config == model.config
    assert (again.input_shape, again.num_outputs) == (model.input_shape, model.num_outputs)
    assert again.likelihood == model.likelihood
    torch.testing.assert_close(again.initial(3), model.initial(3))


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.name)
def test_models_can_be_sent_to_other_processes(model):
    assert pickle.loads(pickle.dumps(model)).layout == model.layout


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("mpl", {}, r"unknown model 'mpl'\. Did you mean 'mlp'\? Known: mlp, fashion-cnn, linear"),
        ("mlp", {"hiden": [3]}, "model 'mlp' has no option 'hiden'. Did you mean 'hidden'"),
        ("mlp", {"hidden": [3]}, "model 'mlp' lacks input_shape, classes"),
        ("mlp", {"input_shape": [4], "classes": 2, "hidden": 8}, "hidden must be a list"),
        ("mlp", {"input_shape": [4], "classes": 2, "hidden": ["8"]}, "got '8'"),
        ("fashion-cnn", {"nrom": "none"}, "Did you mean 'norm'"),
    ],
)
def test_unknown_names_and_options(name, config, message):
    with pytest.raises(ValueError, match=message):
        models.build(name, config)


def test_models_are_fitted_to_a_data_set():
    digits = datasets.load("optdigits")
    model = models.build_for(digits, "mlp", {"hidden": [32]})
    assert (model.input_shape, model.num_outputs) == ((1, 8, 8), 10)
    assert model.layout.num_parameters == 2410
    assert models.build_for(digits, "linear", {}).layout.num_parameters == 650
    assert models.build_for(digits, "mlp", {"classes": 12}).num_outputs == 12


def test_models_that_do_not_fit_a_data_set():
    digits = datasets.load("optdigits")
    with pytest.raises(
        ValueError, match=r"samples of shape \(1, 28, 28\).* has samples of shape \(1, 8, 8\)"
    ):
        models.build_for(digits, "fashion-cnn", {})
    with pytest.raises(ValueError, match=r"9 outputs, .* 10 classes"):
        models.build_for(digits, "mlp", {"classes": 9})
    with pytest.raises(ValueError, match="unknown model"):
        models.build_for(digits, "cnn", {})


def test_flat_models_accept_images_but_convolutions_reject_flat_inputs():
    rows = Dataset(
        name="rows", inputs=np.zeros((2, 784), np.float32), targets=np.array([0, 1]), num_classes=2
    )
    assert models.build_for(rows, "mlp", {}).input_shape == (784,)
    with pytest.raises(ValueError, match="fashion-cnn"):
        models.build_for(rows, "fashion-cnn", {})
