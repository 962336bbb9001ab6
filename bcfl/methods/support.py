"""FAACL: clusters that are also trained by clients that they do not serve."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

from bcfl.methods.registry import recipe
from bcfl.methods.training import Common, flat

if TYPE_CHECKING:
    from bcfl.policies.faacl.faacl import FAACL
    from bcfl.rounds.method import Method

Pairing = Literal["fixed", "random"]
AfterMerge = Literal["intersection", "empty"]
TestedLoss = Literal["raw", "capped"]
THESIS = "Asymmetric clustering in federated continual learning"


class SupportOptions(Common, total=False):
    """Options of FAACL, flat and hierarchical."""

    epsilon: float
    alpha: float
    loss: TestedLoss
    withdraws: bool
    cold_start: float
    clustering: float
    repeats: int
    supporters_after_merge: AfterMerge
    pairing: Pairing


def clusters(
    *,
    hierarchical: bool,
    epsilon: float = 0.7,
    alpha: float = 0.1,
    loss: TestedLoss = "raw",
    withdraws: bool = False,
    cold_start: float = 0.15,
    clustering: float = 0.5,
    repeats: int = 3,
    supporters_after_merge: AfterMerge = "intersection",
    pairing: Pairing = "fixed",
    **common: Unpack[Common],
) -> "FAACL":
    """Clusters with directed support.

    Args:
        hierarchical: whether clusters are merged level by level.
        epsilon: by how much a supporter's model may be worse, nats per sample. Default: the
            largest of table B.1 of the thesis.
        alpha: significance level of the tests. Default: the author's program.
        loss: whether losses are compared raw, or capped so that each wrongly classified sample
            costs log(classes). Default: the author's program.
        withdraws: whether a supporter is removed when it fails a later test. Default: algorithm 2.
        cold_start: rounds of local training, or their share of the run. Default: 50 of 368 rounds
            in the author's program.
        clustering: most rounds with tests, or their share of the run.
        repeats: most passes for each level of the hierarchy, and rounds of tests after a newcomer.
        supporters_after_merge: supporters of a merged cluster.
        pairing: whether the hierarchy joins partitions of devices at random, as in algorithm 6, or
            the first with the last. Default: the author's program.
    """
    from bcfl.policies.faacl.faacl import FAACL
    from bcfl.policies.faacl.support import SupportTesting

    return FAACL(
        objective=flat(**common),
        testing=SupportTesting(epsilon, alpha, loss, withdraws),
        hierarchical=hierarchical,
        cold_start=cold_start,
        clustering=clustering,
        repeats=repeats,
        supporters_after_merge=supporters_after_merge,
        pairing=pairing,
    )


@recipe("faacl", f"{THESIS}, algorithm 5", group=clusters)
def faacl(*, validation: float = 0.25, **options: Unpack[SupportOptions]) -> "Method":
    """Clusters that support each other merge; supporters also train.

    Args:
        validation: share of the clients' training samples on which support is tested.
    """
    return _tested(clusters(hierarchical=False, **options), validation)


@recipe("faacl-h", f"{THESIS}, algorithm 6", group=clusters)
def faacl_hierarchical(*, validation: float = 0.25, **options: Unpack[SupportOptions]) -> "Method":
    """FAACL with a hierarchy of merges.

    Args:
        validation: share of the clients' training samples on which support is tested.
    """
    return _tested(clusters(hierarchical=True, **options), validation)


@recipe("c-faacl", f"{THESIS}, algorithms 7 to 11", group=clusters)
def continual_faacl(
    *,
    validation: float = 0.25,
    memory_samples: int = 50,
    own_rounds: int = 5,
    own_start: Literal["initial", "cluster"] = "cluster",
    merging_rounds: int = 3,
    **options: Unpack[SupportOptions],
) -> "Method":
    """FAACL with a search for the concept of new data.

    Args:
        validation: share of the clients' training samples on which support is tested.
        memory_samples: most validation samples of a time step that are remembered.
        own_rounds: rounds' worth of local steps for the device's own model.
        own_start: whether that model starts from the initial model, or from its cluster's.
        merging_rounds: rounds of a time step in which clusters may merge.
    """
    from bcfl.policies.faacl.continual import ContinualFAACL

    policy = clusters(hierarchical=True, **options)
    searching = ContinualFAACL(
        policy=policy,
        memory_samples=memory_samples,
        own_rounds=own_rounds,
        own_start=own_start,
        merging_rounds=merging_rounds,
    )
    return replace(_tested(policy, validation), policy=searching)


def _tested(policy: "FAACL", validation: float) -> "Method":
    from bcfl.rounds.method import Method

    if not validation > 0:
        raise ValueError(
            f"FAACL tests support on held-out samples: validation must be above 0, got {validation}"
        )
    return Method(policy=policy, common_start=True, validation=validation)
