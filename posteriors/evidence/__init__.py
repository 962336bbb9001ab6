"""Evidence of data under a posterior: closed forms, sampling, sigma points, temperatures.

Predictions are in `posteriors.predictive`.
"""
