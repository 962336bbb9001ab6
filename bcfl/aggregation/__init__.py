"""From local models to cluster models: weighted means, fusion and merging of Gaussians.

Rules of fusion are in `posteriors`; which client feeds which cluster is decided by policies.
"""
