"""Association by what local training did to a model: FeSEM, WeCFL, OCFL, SCL, BCL, FedGroup.

Clustering on distances of trained models or on cosines of updates.
"""
