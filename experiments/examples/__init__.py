"""Short introductory scripts.

Reproductions and measurements are in `experiments.studies`.
"""
