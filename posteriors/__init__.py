"""Gaussian posteriors over network parameters: fit, fuse, merge, weigh."""
