"""Methods in which clusters are trained by clients that they do not serve."""

from __future__ import annotations

from dataclasses import replace

from bcfl.methods.bayesian import bcfl_g
from bcfl.methods.settings import Settings
from bcfl.policies.bayes.borrowing import AsymmetricBCFL
from bcfl.policies.faacl.continual import ContinualFAACL
from bcfl.policies.faacl.faacl import FAACL
from bcfl.policies.faacl.support import SupportTesting
from bcfl.rounds.method import Method


def faacl(settings: Settings) -> Method:
    """FAACL, flat: clusters that support each other merge, the others lend their devices."""
    return _faacl(_clusters(settings), settings)


def faacl_hierarchical(settings: Settings) -> Method:
    """FAACL, hierarchical: clusters meet level by level."""
    return _faacl(_clusters(settings, hierarchical=True), settings)


def continual_faacl(settings: Settings) -> Method:
    """C-FAACL: hierarchical FAACL at first, then devices search for the concept of new data."""
    policy = _clusters(settings, hierarchical=True)
    return replace(_faacl(policy, settings), policy=ContinualFAACL(policy), name="c-faacl")


def bcfl_asymmetric(settings: Settings) -> Method:
    """BCFL-G whose clusters borrow from clients of others, as far as their evidence gains."""
    method = bcfl_g(settings)
    policy = AsymmetricBCFL(method.policy, samples=settings.score_samples)
    return replace(method, policy=policy, name="bcfl-asym")


def _clusters(settings: Settings, *, hierarchical: bool = False) -> FAACL:
    testing = SupportTesting(settings.epsilon, settings.alpha)
    return FAACL(settings.flat, testing, hierarchical)


def _faacl(policy: FAACL, settings: Settings) -> Method:
    if not settings.validation > 0:
        raise ValueError(
            "FAACL tests support on held-out samples: validation must be above 0, got "
            f"{settings.validation}"
        )
    return Method(policy, name="faacl", common_start=True, validation=settings.validation)
