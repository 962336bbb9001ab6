"""Runs and their folders: plan, runner, workers, files, rows of metrics, progress.

Scores are in `experiments.scores`, pages and pictures in `experiments.reports`.
"""
