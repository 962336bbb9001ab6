"""Methods in which clusters are trained by clients that they do not serve."""

from __future__ import annotations

from bcfl.federation import Method
from bcfl.policies.faacl import SupportedClusters
from bcfl.settings import Settings


def faacl(settings: Settings) -> Method:
    """FAACL, flat: clusters that support each other merge, the others lend their devices."""
    return _faacl(SupportedClusters(settings.flat), settings)


def faacl_hierarchical(settings: Settings) -> Method:
    """FAACL, hierarchical: clusters meet level by level."""
    return _faacl(SupportedClusters(settings.flat, hierarchical=True), settings)


def _faacl(policy: SupportedClusters, settings: Settings) -> Method:
    if not settings.validation > 0:
        raise ValueError(
            "FAACL tests support on held-out samples: validation must be above 0, got "
            f"{settings.validation}"
        )
    return Method(policy, name="faacl", common_start=True, validation=settings.validation)
