"""Log evidence of data under a Gaussian: closed form, sampling, sigma points; temperatures.

Predictions are in `posteriors.predictive`.
"""
