"""The equations of the methods' papers in plain numpy, for a network of two linear layers.

Parameters are flat: a body (2, 4) and then a classifier (3, 2), without offsets. Clients train on
all their samples in each step, so that nothing is random.
"""

import numpy as np
from torch import nn

HIDDEN, INPUTS, CLASSES = 2, 4, 3
BODY = slice(0, HIDDEN * INPUTS)
CLASSIFIER = slice(HIDDEN * INPUTS, HIDDEN * (INPUTS + CLASSES))
STEPS, RATE, MOMENTUM = 3, 0.2, 0.9
RHO, MU, TAU, LAMBDA, PULL = 0.95, 0.7, 0.5, 0.3, 0.2


def network():
    """The same network for the program under test."""
    return nn.Sequential(
        nn.Linear(INPUTS, HIDDEN, bias=False), nn.Linear(HIDDEN, CLASSES, bias=False)
    )


def logits(weights, inputs):
    body, classifier = weights[BODY].reshape(HIDDEN, INPUTS), weights[CLASSIFIER].reshape(-1, 2)
    return inputs @ body.T @ classifier.T


def backward(weights, inputs, slope):
    """Gradient of the parameters from that of the logits, (samples, classes)."""
    body, classifier = weights[BODY].reshape(HIDDEN, INPUTS), weights[CLASSIFIER].reshape(-1, 2)
    to_classifier = slope.T @ (inputs @ body.T)
    to_body = (slope @ classifier).T @ inputs
    return np.concatenate([to_body.ravel(), to_classifier.ravel()])


def softmax(scores):
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def loss(weights, data, other=0.0):
    inputs, labels = data
    chosen = softmax(logits(weights, inputs) + other)[np.arange(len(labels)), labels]
    return -np.log(chosen).mean()


def slope_of_loss(weights, data, other=0.0):
    """Gradient of the mean cross-entropy; `other` are logits of a network that is held fixed."""
    inputs, labels = data
    excess = softmax(logits(weights, inputs) + other)
    excess[np.arange(len(labels)), labels] -= 1
    return backward(weights, inputs, excess / len(labels))


def trained(start, data, regularizers=(), other=0.0):
    """SGD with momentum; each term is a function of (weights, inputs) that gives a gradient."""
    weights, velocity = start.copy(), np.zeros_like(start)
    for _ in range(STEPS):
        slope = slope_of_loss(weights, data, other)
        slope = slope + sum((term(weights, data[0]) for term in regularizers), np.zeros_like(start))
        velocity = MOMENTUM * velocity + slope
        weights = weights - RATE * velocity
    return weights


def proximal(anchor, strength, part=slice(None)):
    """Gradient of strength / 2 ||weights - anchor||^2 over a part."""

    def term(weights, inputs):
        del inputs
        slope = np.zeros_like(weights)
        slope[part] = strength * (weights - anchor)[part]
        return slope

    return term


def cosine_slopes(live, models):
    """Cosines of rows with those of models, (models, rows), and their gradients in the rows."""
    cosines, slopes = [], []
    for model in models:
        length, other = np.linalg.norm(live, axis=1), np.linalg.norm(model, axis=1)
        cosine = (live * model).sum(axis=1) / (length * other)
        cosines.append(cosine)
        slopes.append(model / (length * other)[:, None] - (cosine / length**2)[:, None] * live)
    return np.array(cosines), np.array(slopes)


def slope_of_contrast(live, models, own):
    """Gradient of the mean over rows of -log softmax_own(cos / tau)."""
    cosines, slopes = cosine_slopes(live, models)
    excess = softmax(cosines.T / TAU).T
    excess[own] -= 1
    return (excess[:, :, None] * slopes).sum(axis=0) / TAU / len(live)


def contrast_of_parameters(models, own, part=slice(None)):
    """Equation 4.3, times mu; over a part in equation 6.1."""

    def term(weights, inputs):
        del inputs
        slope = np.zeros_like(weights)
        rows = [model[None, part] for model in models]
        slope[part] = MU * slope_of_contrast(weights[None, part], rows, own)[0]
        return slope

    return term


def contrast_of_outputs(models, own):
    """Equation 4.4, times mu."""

    def term(weights, inputs):
        outputs = [logits(model, inputs) for model in models]
        slope = MU * slope_of_contrast(logits(weights, inputs), outputs, own)
        return backward(weights, inputs, slope)

    return term


def terms_of(suffix, models, shares, own):
    """What a suffix adds to the loss of a client of cluster `own`."""
    mean = sum(share * model for share, model in zip(shares, models, strict=True))
    parameters, shared = contrast_of_parameters(models, own), proximal(mean, LAMBDA)
    return {
        "": [],
        "-con-para": [parameters],
        "-con-rep": [contrast_of_outputs(models, own)],
        "-cks": [shared],
        "-con-cks": [
            proximal(mean, LAMBDA, BODY),
            contrast_of_parameters(models, own, CLASSIFIER),
        ],
        "-con-para-cks": [parameters, shared],
    }[suffix]


def weighted(models, counts):
    """Mean by samples."""
    counts = np.asarray(counts, dtype=float)
    return np.tensordot(counts / counts.sum(), np.array(models), axes=1)


def cluster_means(old, local, counts, labels):
    """Mean by samples in each cluster; one that is empty keeps its model."""
    made = []
    for k, model in enumerate(old):
        inside = [i for i, label in enumerate(labels) if label == k]
        made.append(weighted(local[inside], counts[inside]) if inside else model)
    return made


def shares_of(labels, counts, num_clusters):
    """Share of the samples in each cluster; equal before any cluster has one."""
    if labels is None:
        return np.full(num_clusters, 1 / num_clusters)
    sums = np.bincount(labels, counts, num_clusters)
    return sums / sums.sum()
