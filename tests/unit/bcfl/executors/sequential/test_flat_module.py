import torch
from torch import nn

from bcfl import Model
from bcfl.executors.sequential.flat_module import FlatModule


def flat(model, dtype=torch.float32):
    return FlatModule(model, torch.device("cpu"), dtype)


def test_a_loaded_module_computes_with_the_vectors(batch_norm):
    parameters, _ = batch_norm.initial(3)
    buffers = torch.arange(1.0, 9.0)
    module = flat(batch_norm).load(parameters, buffers, training=False)
    torch.manual_seed(0)
    x = torch.randn(5, 3)
    p = parameters
    hidden = x @ p[:12].view(4, 3).T + p[12:16]
    hidden = (hidden - buffers[:4]) / (buffers[4:] + 1e-5).sqrt() * p[16:20] + p[20:24]
    wanted = hidden.relu() @ p[24:32].view(2, 4).T + p[32:]
    torch.testing.assert_close(module(x), wanted)


def test_gradients_and_statistics_are_views(batch_norm):
    workspace = flat(batch_norm)
    module = workspace.load(*batch_norm.initial(0), training=True)
    workspace.gradients.zero_()
    module(torch.randn(8, 3, generator=torch.Generator().manual_seed(0))).square().sum().backward()
    apart = torch.cat([p.grad.flatten() for p in module.parameters()])
    assert torch.equal(workspace.gradients, apart)
    assert apart.abs().max() > 0
    assert not torch.equal(workspace.buffers[:4], torch.zeros(4))
    assert torch.equal(workspace.buffers[:4], module[1].running_mean)


def test_what_is_read_stays_when_the_next_is_loaded(linear):
    workspace = flat(linear)
    first = linear.initial(0)
    workspace.load(*first, training=False)
    read, _ = workspace.read()
    workspace.load(*linear.initial(1), training=False)
    assert torch.equal(read, first[0])


def test_loading_leaves_the_vectors_as_they_are(linear):
    workspace, (mean, buffers) = flat(linear), linear.initial(0)
    kept = mean.clone()
    workspace.load(mean, buffers, training=True)
    with torch.no_grad():
        workspace.parameters.add_(1)
    assert torch.equal(mean, kept)


def test_a_module_can_work_in_float64(linear):
    workspace = flat(linear, torch.float64)
    mean, buffers = linear.initial(0)
    module = workspace.load(mean.double(), buffers.double(), training=False)
    assert module(torch.ones(1, 3, dtype=torch.float64)).dtype == torch.float64


def test_statistics_that_count_batches_start_anew_with_each_load():
    """BatchNorm with cumulative averages: what was trained before leaves no trace."""
    model = Model(
        name="net",
        build=lambda: nn.Sequential(nn.BatchNorm1d(3, momentum=None)),
        input_shape=(3,),
        num_outputs=3,
    )
    workspace, start = flat(model), model.initial(0)
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    read = []
    for _ in range(2):
        workspace.load(*start, training=True)(x)
        read.append(workspace.read()[1])
    assert torch.equal(read[0], read[1])
    torch.testing.assert_close(read[0][:3], x.mean(0))
