"""One client's samples and how they change over time steps.

Data sets and partitions are in `experiments`.
"""
