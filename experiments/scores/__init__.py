"""Numbers about runs: metrics, costs, gains, retention, calibration.

Tables and pictures of them are in `experiments.report`.
"""
