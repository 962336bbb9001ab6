"""Scores that need the data set or several runs: costs, gains, retention, generalisation.

Metrics of one run are in `bcfl.analysis`. Tables and pictures of them are in `experiments.reports`.
"""
