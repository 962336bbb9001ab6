"""Methods that the papers compare with, one file each.

FedAvg, ensembles, local and centralised training, FedSoft, FedDrift, EWC, Stable SGD, APD, FedWeIT.
"""
