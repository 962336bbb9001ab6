"""BCFL-RACE: several starts, scored by cavities, annealed, and raced."""

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from bcfl.methods.bayesian import PosteriorOptions, bcfl
from bcfl.methods.choices import BeliefTemperature, Fusion, Memory, ScoredBy, Temperature
from bcfl.methods.registry import recipe

if TYPE_CHECKING:
    from bcfl.rounds.method import Method


@recipe("bcfl-race", "this package", number="starts", group=bcfl)
def bcfl_race(
    *,
    num_clusters: int = 4,
    starts: int = 4,
    temperature: Temperature = 1.0,
    fusion: Fusion = "normalised",
    memory: Memory = "replace",
    scored_by: ScoredBy = "cavity",
    belief_temperature: BeliefTemperature = "auto",
    annealing: float | None = 3.0,
    annealed_until: float = 0.8,
    warm_starts: int = 1,
    warm_rounds: float = 1,
    held_rounds: int = 0,
    burn_in: float = 0.3,
    min_weight: float = 0.002,
    same: float = 0.95,
    **options: Unpack[PosteriorOptions],
) -> "Method":
    """Several clusterings trained side by side and scored by cavities; the best remain.

    Args:
        num_clusters: number K of clusters.
        starts: initial hypotheses, each with networks of its own.
        temperature: of the association weights: mean weighs by the loss per sample, a number
            divides the summed loss (1 is Bayes' rule), auto fits it on validation samples.
        fusion: how local posteriors are fused; the precision of the prior in the weights of the
            opinion pool keeps parameters that few clients determine from following a single client.
            Default: measured, studies/association-posterior ("What else was tried").
        memory: what the prior of the next round retains.
        scored_by: model that scores a client in a cluster: that of the cluster, its cavity, without
            the client's last contribution, or (crossfit) one of several, trained without the
            client's fold. Default: measured, studies/association-posterior ("Cavities in other
            methods").
        belief_temperature: divides summed cavity losses in membership probabilities; auto fits it
            on two halves of the clients' samples. Default: measured, studies/association-posterior
            ("Association posterior").
        annealing: temperature at which associations are drawn in the first round; none always takes
            the best. Default: measured, studies/association-posterior ("What else was tried").
        annealed_until: round, or share of the run below 1, in which the temperature reaches 0.
            Default: measured, studies/association-posterior ("What else was tried").
        warm_starts: number of starts that begin with K-means on local models, which finds many
            clusters where random networks leave some clusters without clients. Default: measured,
            studies/association-posterior ("Many clusters").
        warm_rounds: rounds of K-means, or share of the run below 1. In the first all clients train
            from one model, so that local models differ by their data alone; K-means of the second
            round found fewer clusters. Default: measured, studies/association-posterior ("What else
            was tried").
        held_rounds: rounds after these in which warm starts keep the clusters of K-means, so that
            the models of many clusters can tell clients apart before the association changes.
        burn_in: round, or share of the run below 1, before which every start is kept. Default:
            measured, studies/association-posterior ("What else was tried").
        min_weight: starts of lower weight are dropped. Default: measured,
            studies/association-posterior ("What else was tried").
        same: two starts that agree on this share of the clients count as one.
    """
    from bcfl.policies import WarmUp
    from bcfl.policies.wrappers.annealed import AnnealedAssociation
    from bcfl.trackers.racing import RacingStarts

    method = bcfl(
        RacingStarts(burn_in, min_weight, same),
        num_clusters=num_clusters,
        temperature=temperature,
        fusion=fusion,
        memory=memory,
        scored_by=scored_by,
        belief_temperature=belief_temperature,
        **options,
    )
    policy = method.policy
    if annealing is not None:
        policy = AnnealedAssociation(policy, annealing, annealed_until)
    warmed_up = WarmUp.by_kmeans(policy, warm_rounds, warm_starts, held_rounds)
    return replace(method, starts=starts, policy=warmed_up)
