"""Networks as functions of one flat vector; memory layout; running statistics.

Nothing probabilistic here.
"""
