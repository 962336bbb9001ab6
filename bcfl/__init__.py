"""Clustered federated learning as probabilistic data association."""
