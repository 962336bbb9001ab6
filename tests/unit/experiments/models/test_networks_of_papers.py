"""Networks of the papers: sizes by hand, one step of training, names that build them again."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from experiments import datasets, models

LENET = (3 * 25 * 6 + 6) + (6 * 25 * 16 + 16) + (400 * 120 + 120) + (120 * 84 + 84)
FASHION = (25 * 16 + 16) + (16 * 25 * 32 + 32)
OCFL = (25 * 16 + 16) + (16 * 25 * 32 + 32) + (32 * 25 * 32 + 32)
DIGITS = (3 * 25 * 64 + 64) + (64 * 25 * 64 + 64) + (64 * 25 * 128 + 128)


def lstm(inputs, hidden):
    """Both directions: four gates on the input and the state, with two biases each."""
    return 2 * 4 * hidden * (inputs + hidden + 2)


def stage(inputs, width, depth):
    """Convolutions and normalisations of a stage of ResNet-34, with its projection."""
    first = 9 * inputs * width + 9 * width * width
    later = (depth - 1) * 2 * 9 * width * width
    projection = inputs * width + 2 * width if inputs != width else 0
    return first + later + depth * 4 * width + projection


STAGES = [(64, 64, 3), (64, 128, 4), (128, 256, 6), (256, 512, 3)]
RESNET = 27 * 64 + 128 + sum(stage(*sizes) for sizes in STAGES) + 5130
BILSTM = lstm(300, 64) + lstm(128, 32) + 64 * 64 + 64 + 64 * 2 + 2
PAPERS = {
    "fashion-cnn": ({}, (1, 28, 28), 10, FASHION + 2 * 16 + 2 * 32 + 15690),
    "tissue-cnn": ({}, (1, 28, 28), 8, FASHION + 2 * 16 + 2 * 32 + 1568 * 8 + 8),
    "cifar-cnn": ({}, (3, 32, 32), 10, LENET + 850),
    "path-cnn": ({}, (3, 28, 28), 9, LENET + 84 * 9 + 9),
    "digits-five-cnn": (
        {},
        (3, 28, 28),
        10,
        DIGITS + 2 * (64 + 64 + 128) + 6275 * 3072 + 3075 * 2048 + 20490,
    ),
    "amazon-mlp": ({}, (5000,), 2, 5001 * 1000 + 1001 * 500 + 501 * 100 + 202),
    "ocfl-cnn": ({}, (1, 28, 28), 10, OCFL + 25089 * 1000 + 1001 * 250 + 251 * 100 + 1010),
    "resnet34": ({}, (3, 32, 32), 10, RESNET),
    "faacl-mlp": ({"hidden": [512], "classes": 62}, (1, 28, 28), 62, 785 * 512 + 513 * 62),
    "faacl-cnn": ({}, (1, 28, 28), 10, (9 * 32 + 32) + (32 * 9 * 64 + 64) + 3137 * 10),
    "bilstm": ({}, (25, 300), 2, BILSTM),
}


@pytest.mark.parametrize("name", PAPERS)
def test_sizes_and_one_step_of_training(name):
    config, shape, classes, parameters = PAPERS[name]
    model = models.build(name, config)
    assert (model.input_shape, model.num_outputs) == (shape, classes)
    assert model.layout.num_parameters == parameters
    again = models.build(model.name, model.config)
    assert (again.layout, again.config) == (model.layout, model.config)
    module = model.module()
    inputs = torch.rand(4, *shape, generator=torch.Generator().manual_seed(0))
    outputs = module(inputs)
    assert outputs.shape == (4, classes)
    cross_entropy(outputs, torch.arange(4) % classes).backward()
    gradients = [parameter.grad for parameter in module.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    assert all(gradient.any() for gradient in gradients)


def test_resnet34_has_34_layers_with_weights_on_its_longest_path():
    convolutions = [
        name
        for name, layer in models.resnet34().module().named_modules()
        if isinstance(layer, torch.nn.Conv2d) and "shortcut" not in name
    ]
    assert len(convolutions) + 1 == 34


@pytest.mark.parametrize("name", ["digits-five-cnn", "tissue-cnn"])
@pytest.mark.parametrize("norm", ["group", "none"])
def test_other_normalisation_keeps_no_running_statistics(name, norm):
    model = models.build(name, {"norm": norm})
    assert model.layout.num_buffers == 0
    assert model.module()(torch.rand(2, *model.input_shape)).shape == (2, model.num_outputs)


def test_a_narrow_network_keeps_the_proportions_of_the_published_one():
    model = models.build("digits-five-cnn", {"width": 8})
    narrow = [8, 8, 16, 384, 256]
    sizes = [slot.shape[0] for slot in model.layout.parameters if len(slot.shape) > 1]
    assert sizes == [*narrow, 10]
    whole = [slot.shape[0] for slot in models.digits_five_cnn().layout.parameters[::4]]
    assert whole == [*(8 * size for size in narrow), 10]
    assert model.config["width"] == 8
    assert model.module()(torch.rand(2, *model.input_shape)).shape == (2, 10)
    with pytest.raises(ValueError, match="width must be"):
        models.digits_five_cnn(width=0)


def test_word_numbers_pass_an_embedding():
    model = models.bilstm(input_shape=(25,), words=50)
    assert model.layout.num_parameters == 50 * 300 + BILSTM
    module = model.module().eval()
    numbers = torch.randint(1, 50, (3, 25), generator=torch.Generator().manual_seed(0)).float()
    vectors = models.bilstm().module().eval()
    vectors.load_state_dict(module.state_dict(), strict=False)
    torch.testing.assert_close(module(numbers), vectors(module.embedding(numbers.long())))


def test_the_lstm_reads_both_directions():
    module = models.bilstm(input_shape=(5, 3)).module().eval()
    sequence = torch.rand(1, 5, 3, generator=torch.Generator().manual_seed(0))
    for place in (0, 4):
        changed = sequence.clone()
        changed[0, place] += 1
        assert not torch.allclose(module(changed), module(sequence))


def test_the_lstm_reads_sequences_with_an_axis_of_one_channel():
    module = models.bilstm(input_shape=(1, 5, 3)).module().eval()
    plain = models.bilstm(input_shape=(5, 3)).module().eval()
    plain.load_state_dict(module.state_dict())
    sequences = torch.rand(2, 5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(module(sequences[:, None]), plain(sequences))


def test_an_embedding_takes_the_numbers_of_words_and_nothing_else():
    words, classes = np.random.default_rng(0).integers(1, 10_000, (12, 25)), np.arange(12) % 2
    kept = datasets.from_numpy(words, classes, scaled=False)
    assert models.build_for(kept, "bilstm", {}).input_shape == (25,)
    with pytest.raises(ValueError, match=r"0 to 99 with words=100; .* are from \d+ to \d+$"):
        models.build_for(kept, "bilstm", {"words": 100})
    with pytest.warns(UserWarning, match="scaled=False"):
        scaled = datasets.from_numpy(words, classes)
    with pytest.raises(
        ValueError, match=r"from 0 to 1, not all .* kept by scaled=False .* key of \[data\]"
    ):
        models.build_for(scaled, "bilstm", {})


def test_a_sequence_of_another_shape():
    with pytest.raises(ValueError, match=r"\(length,\) or \(length, features\), got \(5, 3, 2\)"):
        models.bilstm(input_shape=(5, 3, 2))
