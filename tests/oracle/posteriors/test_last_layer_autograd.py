"""`laplace-last-layer` of a transformer, `laplace-full` of tied weights: autograd's Jacobian.

Daxberger, Kristiadi, Immer, Eschenhagen, Bauer, Hennig (2021), "Laplace redux - effortless Bayesian
deep learning": the Gauss-Newton matrix of the last layer's parameters,
H = sum_n J_n' (diag(p_n) - p_n p_n') J_n, with the Jacobian J_n of the logits.
"""

import torch
from torch import nn
from torch.func import functional_call, jacrev

from posteriors import DiagonalGaussian, local_posterior_fit

PRIOR = 0.7


class ViT(nn.Module):
    """Tokens with a positional embedding and a class token that belong to the network itself."""

    def __init__(self):
        super().__init__()
        self.position = nn.Parameter(torch.randn(5, 4))
        self.token = nn.Parameter(torch.randn(1, 1, 4))
        self.head = nn.Linear(4, 3)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        x = torch.cat([self.token.expand(len(x), 1, 4), x], 1) + self.position
        return self.head(self.attention(x, x, x, need_weights=False)[0][:, 0])


def gauss_newton(module, inputs):
    """(15, 15) matrix of the weights and biases of `head`, in that order."""
    own = {f"head.{name}": value.detach() for name, value in module.head.named_parameters()}

    def logits(parameters, x):
        return functional_call(module, parameters, (x[None],))[0]

    matrix = torch.zeros(15, 15, dtype=torch.float64)
    for x in inputs:
        by_name = jacrev(logits)(own, x)
        jacobian = torch.cat([by_name[name].flatten(1) for name in own], 1)
        p = logits(own, x).softmax(0)
        matrix += jacobian.T @ (p.diag() - p.outer(p)) @ jacobian
    return matrix.detach()


def test_last_layer_curvature_of_a_network_with_parameters_of_its_own():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, inputs = ViT().double().eval(), torch.randn(9, 4, 4, dtype=torch.float64)
    targets = torch.arange(9) % 3
    size = sum(parameter.numel() for parameter in module.parameters())
    prior = DiagonalGaussian.isotropic(torch.zeros(size, dtype=torch.float64), PRIOR)
    fitting = local_posterior_fit("laplace-last-layer")
    fitting.check(module, inputs, prior)
    fit = fitting.fit(module, inputs, targets, prior)

    matrix = gauss_newton(module, inputs)
    names = [name for name, _ in module.named_parameters()]
    assert names[:4] == ["position", "token", "head.weight", "head.bias"]
    places = [*range(5 * 4 + 4, 5 * 4 + 4 + 15)]
    torch.testing.assert_close(fit.curvature[places], matrix.diagonal())
    rest = torch.ones(size, dtype=torch.bool)
    rest[places] = False
    assert not fit.curvature[rest].any()
    assert fit.structure is not None
    torch.testing.assert_close(fit.structure.matrix, matrix)


class Tied(nn.Module):
    """An embedding and a classifier that have one weight."""

    def __init__(self):
        super().__init__()
        self.words, self.classes = nn.Embedding(5, 3), nn.Linear(3, 5)
        self.classes.weight = self.words.weight

    def forward(self, x):
        return self.classes(self.words(x.long()).mean(1).tanh())


def test_full_curvature_of_tied_weights_has_both_of_their_uses():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, inputs = Tied().double(), torch.randint(0, 5, (9, 2))
    prior = DiagonalGaussian.isotropic(torch.zeros(20, dtype=torch.float64), PRIOR)
    fitting = local_posterior_fit("laplace-full")
    fitting.check(module, inputs, prior)
    fit = fitting.fit(module, inputs, torch.arange(9) % 5, prior)

    def logits(vector, x):
        weight, bias = vector[:15].view(5, 3), vector[15:]
        return weight @ weight[x].mean(0).tanh() + bias

    vector = torch.cat([module.words.weight.flatten(), module.classes.bias]).detach()
    matrix = torch.zeros(20, 20, dtype=torch.float64)
    for x in inputs:
        jacobian, p = jacrev(logits)(vector, x), logits(vector, x).softmax(0)
        matrix += jacobian.T @ (p.diag() - p.outer(p)) @ jacobian
    assert fit.structure is not None
    torch.testing.assert_close(fit.structure.matrix, matrix)
