"""Likelihoods of networks and their curvature: diagonal, dense, per layer.

Fits that turn a curvature into a posterior are in `posteriors.local`.
"""
