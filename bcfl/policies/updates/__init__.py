"""Clustering of local models and updates: FeSEM, WeCFL, OCFL, SCL, BCL, FedGroup.

By distances of trained models, or by cosines of updates.
"""
