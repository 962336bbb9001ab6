"""Gaussians over flat parameter vectors: fusion, merging, memory over rounds, divergences.

Fitting them to networks is in `posteriors.local`.
"""
