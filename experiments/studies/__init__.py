"""Reproductions and measurements whose results are in RESULTS.md.

Short introductory scripts are in `experiments.examples`.
"""
