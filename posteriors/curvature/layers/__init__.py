"""Squared per-sample gradients of single layers, one file per family of layers.

The same rule serves one network and a stack of networks of one architecture, whose vectors are
(models, samples, features) and whose images are (samples, models x channels, height, width), as
batched matrix products and grouped convolutions take them.
"""
