"""Asymmetric clustering by directed support between clusters: FAACL and C-FAACL.

The support test itself is a statistic of `bcfl.protocol`.
"""
