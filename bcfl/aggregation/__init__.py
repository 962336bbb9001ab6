"""From local models to cluster models: weighted means, fusion and merging of Gaussians.

Fusion rules are in `posteriors`; which client contributes to which cluster is up to policies.
"""

from bcfl.aggregation.aggregation import Aggregation, FusionReport
from bcfl.aggregation.contributions import Contribution
from bcfl.aggregation.merging import merge_hypotheses

__all__ = [
    "Aggregation",
    "Contribution",
    "FusionReport",
    "merge_hypotheses",
]
