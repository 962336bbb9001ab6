"""The baselines of FAACL: soft clusters, clusters that follow drift, continual learning."""

from __future__ import annotations

from bcfl.federation import Method
from bcfl.policies.drift import DriftAssociation
from bcfl.policies.soft import SoftAssociation
from bcfl.settings import Settings


def fedsoft(settings: Settings) -> Method:
    """FedSoft (Ruan and Joe-Wong 2022): clients feed all clusters, by importance."""
    policy = SoftAssociation(settings.known_clusters, settings.flat)
    return Method(policy, name="fedsoft")


def feddrift(settings: Settings) -> Method:
    """FedDrift (Jothimurugesan et al. 2023): one cluster per client, merged where alike."""
    return Method(DriftAssociation(settings.flat), name="feddrift", common_start=True)
