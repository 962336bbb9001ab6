"""Baselines of FAACL: soft clusters, clusters that follow drift, continual learning."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bcfl.architecture.decomposition import ADAPTIVE, OWN, SHARED, decomposed
from bcfl.architecture.dropout import with_dropout
from bcfl.architecture.fedweit import MaskedUpload, transferring
from bcfl.architecture.layout import Part
from bcfl.methods.settings import Settings
from bcfl.policies.baselines.apd import APD
from bcfl.policies.baselines.ewc import EWC
from bcfl.policies.baselines.feddrift import FedDrift
from bcfl.policies.baselines.fedsoft import FedSoft
from bcfl.policies.baselines.fedweit import FedWeIT
from bcfl.policies.baselines.stable_sgd import StableSGD
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Proximal, Sparsity
from bcfl.rounds.method import Method

DROPOUT = 0.25
SMALL_BATCH = 10


def fedsoft(settings: Settings) -> Method:
    """FedSoft (Ruan and Joe-Wong 2022): clients feed all clusters, by importance."""
    policy = FedSoft(settings.known_clusters, settings.flat)
    return Method(policy, name="fedsoft")


def feddrift(settings: Settings) -> Method:
    """FedDrift (Jothimurugesan et al. 2023): one cluster per client, merged where alike."""
    policy = FedDrift(settings.flat, settings.delta)
    return Method(policy, name="feddrift", common_start=True)


def ewc(settings: Settings) -> Method:
    """FedProx + EWC: elastic weight consolidation (Kirkpatrick et al. 2017)."""
    return Method(EWC(_held_back(settings)), name="ewc", common_start=True)


def ssgd(settings: Settings) -> Method:
    """FedProx + Stable SGD (Mirzadeh et al. 2020): dropout, small batches, a falling rate."""
    objective = _held_back(settings)
    small = replace(objective, batch_size=min(objective.batch_size, SMALL_BATCH))
    return Method(
        StableSGD(small),
        name="ssgd",
        common_start=True,
        architecture=partial(with_dropout, rate=DROPOUT),
    )


def apd(settings: Settings) -> Method:
    """FedProx + APD (Yoon et al. 2020): shared weights, with masks and adaptive ones of one's own.

    Every client is its own cluster; the shared weights are common to all.
    """
    regularizers = (Proximal(settings.proximal, Part(SHARED)), Sparsity())
    policy = APD(replace(settings.flat, regularizers=regularizers))
    return Method(policy, name="apd", common_start=True, architecture=decomposed)


def fedweit(settings: Settings) -> Method:
    """FedWeIT (Yoon et al. 2021): as APD, with masked uploads and others' adaptive weights."""
    upload = MaskedUpload()
    objective = replace(
        settings.flat,
        curvature="uniform",
        regularizers=(Sparsity(upload.least),),
        phases=((SHARED, ADAPTIVE, OWN),),
        upload=upload,
    )
    policy = FedWeIT(APD(objective), upload.least)
    return Method(policy, name="fedweit", common_start=True, architecture=transferring)


def _held_back(settings: Settings) -> Objective:
    return replace(settings.flat, regularizers=(Proximal(settings.proximal),))
