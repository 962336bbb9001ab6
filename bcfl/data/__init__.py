"""Samples of one client by view, and their change over time steps.

Data sets and partitions are in `experiments`.
"""
