"""Scenarios and options, validated when they are read.

Running it is in `experiments.runs`.
"""
