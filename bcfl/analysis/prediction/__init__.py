"""Predictions by the mixture of models that serves a client, of classes and of numbers.

The functions that take a `Run` are its methods.
"""
