"""From local models to cluster models: weighted means, fusion and merging of Gaussians.

Fusion rules are in `posteriors`; which client contributes to which cluster is up to policies.
"""
