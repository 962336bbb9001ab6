"""Networks as named parameter blocks on one flat vector.

Layout, scopes (global, cluster, client) and the architectures that need blocks of their own:
additive (CAM), decomposed (APD, FedWeIT), dropout. Concrete networks are in `experiments.models`.
"""
