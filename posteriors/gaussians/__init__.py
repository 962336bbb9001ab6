"""Gaussians over flat parameter vectors: fused, merged, remembered between rounds, compared.

Fitting them to networks is in `posteriors.local`.
"""
