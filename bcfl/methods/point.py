"""Methods without posteriors: flat Gaussians, whose fusion is a weighted mean."""

from __future__ import annotations

from dataclasses import replace

from bcfl.architecture.layout import Part
from bcfl.methods.settings import Settings
from bcfl.policies import (
    ClusterSize,
    FedAvg,
    KMeansAssociation,
    LikelihoodAssociation,
    Policy,
)
from bcfl.policies.baselines.centralised import Centralised
from bcfl.policies.baselines.ensemble import Ensemble
from bcfl.policies.baselines.local_training import LocalTraining
from bcfl.policies.wrappers.frozen import Frozen
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Proximal
from bcfl.rounds.method import Method


def fedavg(settings: Settings) -> Method:
    """FedAvg (McMahan et al. 2017)."""
    return Method(FedAvg(settings.flat), name="fedavg", common_start=True)


def fedprox(settings: Settings) -> Method:
    """FedProx (Li et al. 2020): local models are held near the one that they start from."""
    return Method(FedAvg(_held_back(settings)), name="fedprox", common_start=True)


def local(settings: Settings) -> Method:
    """Every client trains alone."""
    return Method(LocalTraining(settings.flat), name="local", common_start=True)


def centralised(settings: Settings) -> Method:
    """One model, trained on all samples in one place."""
    policy = Centralised(settings.flat)
    return Method(policy, name="centralised", common_start=True, centralised=True)


def fedavg_plus(settings: Settings) -> Method:
    """FedAvg+: K independent FedAvg models, whose logits are averaged."""
    policy = Ensemble(settings.known_clusters, settings.flat)
    return Method(policy, name="fedavg-plus", pooling="logits")


def fedprox_plus(settings: Settings) -> Method:
    """FedProx+: K independent FedProx models, whose logits are averaged."""
    policy = Ensemble(settings.known_clusters, _held_back(settings))
    return Method(policy, name="fedprox-plus", pooling="logits")


def _held_back(settings: Settings) -> Objective:
    return replace(settings.flat, regularizers=(Proximal(settings.proximal),))


def ifca(settings: Settings) -> Method:
    """IFCA (Ghosh et al. 2020): each client joins the cluster of lowest loss."""
    policy = LikelihoodAssociation(
        settings.known_clusters,
        settings.flat,
        score_samples=settings.score_samples,
        cluster_size=ClusterSize.of(settings.cluster_size),
    )
    return Method(policy, name="ifca")


def wecfl(settings: Settings) -> Method:
    """WeCFL (Ma et al. 2022): sample-weighted K-means on local models."""
    bounds = ClusterSize.of(settings.cluster_size)
    part = Part(layers=settings.clustered_layers)
    policy = KMeansAssociation(settings.known_clusters, settings.flat, "samples", bounds, part)
    return Method(_few_shot(policy, settings), name="wecfl", common_start=True)


def fesem(settings: Settings) -> Method:
    """FeSEM (Long et al. 2022): K-means on local models."""
    bounds = ClusterSize.of(settings.cluster_size)
    part = Part(layers=settings.clustered_layers)
    policy = KMeansAssociation(settings.known_clusters, settings.flat, "equal", bounds, part)
    return Method(_few_shot(policy, settings), name="fesem", common_start=True)


def _few_shot(policy: Policy, settings: Settings) -> Policy:
    rounds = settings.clustering_rounds
    return policy if rounds is None else Frozen(policy, rounds)
