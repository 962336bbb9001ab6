"""Executors batched over models: batched matrix products and grouped convolutions.

Same results as `sequential`, beyond rounding.
"""
