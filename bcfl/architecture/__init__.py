"""Networks as named parameter blocks of one flat vector.

Here: layouts, scopes of blocks (global, cluster, client), and architectures built from blocks:
additive (CAM), decomposed (APD, FedWeIT), dropout. Concrete networks are in `experiments.models`.
"""
