"""Reproductions and measurements whose results are in `experiments/results/studies`.

Short introductory scripts are in `experiments.examples`.
"""
