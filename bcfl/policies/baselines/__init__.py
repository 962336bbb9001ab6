"""Baselines of the papers, one method per file.

FedAvg, ensembles, local and centralised training, FedSoft, FedDrift, EWC, Stable SGD, APD, FedWeIT.
"""
