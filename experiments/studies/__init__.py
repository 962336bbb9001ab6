"""Reproductions and measurements: scripts whose results are in RESULTS.md.

Short scripts to start from are in `experiments.examples`.
"""
