"""Scenarios and options: what is run, checked when it is read.

Running it is in `experiments.runs`.
"""
