"""Readers of files and folders, one module per format.

`recognition` finds which of them reads a path. What is made of the arrays that they read is decided
in `experiments.datasets.dataset`; data sets that have names are in `experiments.datasets.known`.
"""
