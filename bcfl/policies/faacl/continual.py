"""C-FAACL: FAACL for data that change over time, with a search for recurring concepts.

"Asymmetric clustering in federated continual learning", chapter 4, algorithms 7 to 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.context import RoundContext
from bcfl.policies.faacl.concept_search import ConceptMemory, ConceptSearch
from bcfl.policies.faacl.faacl import FAACL, INITIAL, support_facts
from bcfl.policies.faacl.mutual_merge import Clustering, indices_after_merging
from bcfl.policies.faacl.support import Findings
from bcfl.policies.policy import Candidate, Given, Ranking, answered
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.requests import Exchange, Steps, Train
from bcfl.runtime import check_whole
from bcfl.runtime.seeds import lineage_key


@dataclass(frozen=True, kw_only=True)
class ContinualFAACL(PolicyWrapper):
    """FAACL; in later time steps each device first searches for a cluster of its new concept.

    The first time step, and hence static data, is FAACL. When a device first participates in a
    later one, it leaves its cluster and trains a personal model on its new data. It joins a cluster
    that it was in before, else any cluster, whose model and its own support each other (see
    `bcfl.policies.faacl.concept_search.ConceptSearch`); else it forms a new cluster. Clusters with
    devices then test support and merge until nothing changes, in the first rounds of the time step;
    the thesis merges once. Clusters without devices are kept for recurring concepts, and are not
    tested.

    A device without validation samples, or with too few for any test, keeps its cluster; one
    without a cluster forms a new one, which starts from the initial model and is tested from the
    next round on.

    Attributes:
        policy: FAACL, for the first time step, for tests, merging and training.
        memory_samples: largest number of validation samples remembered of each time step.
        own_rounds: number of rounds whose local steps the personal model is trained for.
        own_start: whether it starts from the `initial` model or from that of the device's
            `cluster`, which the thesis leaves open. From the initial one it takes many more steps
            to match a cluster's model, and a recurring concept is taken for a new one.
        merging_rounds: rounds of a time step in which clusters may merge, counted again after a
            cluster was opened.
    """

    policy: FAACL
    memory_samples: int = 50
    own_rounds: int = 5
    own_start: Literal["initial", "cluster"] = "cluster"
    merging_rounds: int = 3

    def __post_init__(self) -> None:
        ConceptSearch(self.policy.testing, self.memory_samples)
        for name in ("own_rounds", "merging_rounds"):
            check_whole(name, getattr(self, name))
        if self.own_start not in ("initial", "cluster"):
            raise ValueError(f"own_start must be 'initial' or 'cluster', got {self.own_start!r}")

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Cluster as FAACL, or search for concepts, then train.

        See `bcfl.policies.Policy.associate`.
        """
        initial = hypothesis.carried_models.get(INITIAL, hypothesis.clusters[0])
        memory = ConceptMemory.of(hypothesis.state)
        if context.step == 0:
            rounds = context.rounds_in_step or context.num_rounds
            alone = replace(context, num_rounds=rounds)
            ranking = yield from self.policy.associate(hypothesis, alone)
            (chosen,) = ranking
            memory = memory.after(context.validating(context.participants), 0)
            facts = ranking.facts
        else:
            chosen, memory, facts = yield from self._later(hypothesis, memory, initial, context)
        chosen = replace(
            chosen,
            carried_models={**chosen.carried_models, INITIAL: initial},
            state={**chosen.state, **memory.state},
        )
        return replace(Ranking.only(chosen), facts=facts)

    def _later(
        self,
        hypothesis: Hypothesis,
        memory: ConceptMemory,
        initial: Posterior,
        context: RoundContext,
    ) -> Steps[tuple[Candidate, ConceptMemory, Mapping[str, float]]]:
        """A round of a time step after the first."""
        state, before = hypothesis.state, _previous(hypothesis)
        begins = int(state.get("concept_step", 0)) < context.step
        left = self.merging_rounds if begins else int(state.get("passes_left", 0))
        memory = memory.with_past(before.labels, context.step)
        due = memory.due(context.validating(context.participants), context.step)
        own = yield from self._own_models(hypothesis, due, initial, context)
        labels, facts = yield from self._search(hypothesis, own, memory, context)
        opening = {device: own[device] for device, label in labels.items() if label == UNSEEN}
        opened = replace(hypothesis, clusters=(*hypothesis.clusters, *opening.values()))
        clustering = _regrouped(before, labels, [*opening])
        left = self.merging_rounds if opening else left
        memory = memory.after(own, context.step)
        clustering, memory, tests = yield from self._merged(
            opened, clustering, memory, context, left > 0
        )
        newcomers = [c for c in context.participants if c not in clustering.labels]
        for client in newcomers:
            clustering = clustering.joined_by(client, 0)
        left = self.merging_rounds if newcomers else max(left - 1, 0)
        chosen = self.policy.planned(opened, clustering, context)
        chosen = _with_given_models(chosen, clustering, opened, len(hypothesis.clusters))
        remembered = {"passes_left": left, "concept_step": context.step}
        chosen = replace(chosen, state={**chosen.state, **remembered})
        return chosen, memory, {**support_facts(clustering, tests), **facts}

    def _own_models(
        self,
        hypothesis: Hypothesis,
        due: Iterable[str],
        initial: Posterior,
        context: RoundContext,
    ) -> Steps[Mapping[str, Posterior]]:
        """A personal model for each device with possibly new data, if it answers."""
        labels = Clustering.of(hypothesis).labels
        starts: dict[str, Posterior] = {}
        for device in due:
            continues = self.own_start == "cluster" and device in labels
            starts[device] = hypothesis.clusters[labels[device]] if continues else initial
        objective = self.policy.objective
        plain = replace(objective.longer(self.own_rounds), regularizers=(), curvature="samples")
        requests = [Train(device, start.key, plain) for device, start in starts.items()]
        replies = (yield Exchange.of(requests, starts.values())) if requests else {}
        return {
            train.client: starts[train.client].with_parameters(
                context.model,
                lineage_key("own", train.client, train.start, context.round),
                reply.mean,
                reply.buffers,
            )
            for train, reply in answered(requests, replies).items()
        }

    def _search(
        self,
        hypothesis: Hypothesis,
        own: Mapping[str, Posterior],
        memory: ConceptMemory,
        context: RoundContext,
    ) -> Steps[tuple[Mapping[str, int], Mapping[str, float]]]:
        """Cluster of each device that searched; -1 is a new one."""
        search = ConceptSearch(self.policy.testing, self.memory_samples)
        clusters = hypothesis.clusters
        matches = yield from search.local(own, clusters, memory)
        local = search.best(matches)
        rest = {device: model for device, model in own.items() if device not in local}
        more = yield from search.everywhere(rest, clusters, memory, context)
        everywhere = search.best(more)
        able = {match.device for match in (*matches, *more) if match.able}
        tested = {match.device for match in (*matches, *more)}
        new = [d for d in rest if d not in everywhere and (d in able or d not in tested)]
        facts = {
            "recognised_by_device": float(len(local)),
            "recognised_by_others": float(len(everywhere)),
            "new_concepts": float(len(new)),
            "searches_with_too_few_pairs": float(len(tested - able)),
        }
        return {**local, **everywhere, **dict.fromkeys(new, UNSEEN)}, facts if own else {}

    def _merged(
        self,
        hypothesis: Hypothesis,
        clustering: Clustering,
        memory: ConceptMemory,
        context: RoundContext,
        merging: bool,
    ) -> Steps[tuple[Clustering, ConceptMemory, list[Findings]]]:
        """Test support and merge until no clusters merge."""
        tests: list[Findings] = []
        while merging:
            before = clustering
            clustering, findings = yield from self.policy.tested(
                hypothesis, before, len(tests), context
            )
            tests.append(findings)
            supported = replace(before, support=findings.support)
            memory = memory.reindexed(indices_after_merging(supported))
            merging = len(clustering.members) < len(before.members)
            clustering = _partitioned(clustering)
        return clustering, memory, tests


def _previous(hypothesis: Hypothesis) -> Clustering:
    """The clustering of a hypothesis; empty clusters before the first round."""
    clustering, count = Clustering.of(hypothesis), len(hypothesis.clusters)
    if clustering.members:
        return clustering
    return Clustering(((),) * count, tuple(range(count)), tuple(range(count)))


def _regrouped(
    before: Clustering, assigned: Mapping[str, int], opening: Iterable[str]
) -> Clustering:
    """Devices that searched move to their assigned clusters, or open new ones.

    Args:
        before: the clusters of the hypothesis.
        assigned: cluster of each device that searched, -1 for a new one.
        opening: devices that open clusters, whose models follow those of the hypothesis.
    """
    labels = {**before.labels, **assigned}
    count = len(before.members)
    labels |= {device: count + index for index, device in enumerate(opening)}
    members: list[list[str]] = [[] for _ in range(1 + max([count - 1, *labels.values()]))]
    for device, label in sorted(labels.items()):
        members[label].append(device)
    rows = tuple(map(tuple, members))
    whole = replace(before, members=rows, sources=tuple(range(len(rows))))
    return _partitioned(whole)


def _partitioned(clustering: Clustering) -> Clustering:
    """Clusters with devices in partition 0, each empty cluster in one of its own."""
    partitions, num_empty = [], 0
    for members in clustering.members:
        num_empty += not members
        partitions.append(0 if members else num_empty)
    return replace(clustering, partitions=tuple(partitions))


def _with_given_models(
    chosen: Candidate, clustering: Clustering, opened: Hypothesis, count: int
) -> Candidate:
    """The candidate whose new clusters continue from given models.

    Args:
        chosen: planned for the hypothesis with the new models.
        clustering: its `sources` are the models that the clusters continue from.
        opened: the hypothesis with the new models after its own.
        count: number of clusters of the hypothesis itself.
    """
    origins = [
        Given(opened.clusters[source]) if source >= count else origin
        for source, origin in zip(clustering.sources, chosen.origins, strict=True)
    ]
    models = (*chosen.models, *opened.clusters[count:])
    return replace(chosen, origins=tuple(origins), models=models)
