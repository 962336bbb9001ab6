"""Log evidence of data under a Gaussian: closed form and sampling.

Predictions are in `posteriors.predictive`.
"""
