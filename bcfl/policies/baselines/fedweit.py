"""Clients that draw on what others' adaptive parts have learnt in earlier time steps: FedWeIT."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bcfl.architecture.decomposition import OWN
from bcfl.architecture.fedweit import KNOWLEDGE, knowledge_of, num_slots, without_attention
from bcfl.hypotheses.association import UNSEEN
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import Posterior
from bcfl.policies.baselines.apd import APD
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Ranking
from bcfl.policies.wrappers.policy_wrapper import PolicyWrapper
from bcfl.protocol.requests import Steps
from bcfl.runtime.seeds import generator, lineage_key


@dataclass(frozen=True)
class FedWeIT(PolicyWrapper):
    """Decomposed clients whose weights also hold, by attention, other clients' adaptive parts.

    With each new time step the knowledge becomes the adaptive parts that clients had at the end of
    the step before, without small entries, and everybody's attention starts at 0. The authors keep
    one part of each client, here there are as many as the network has slots, of clients that are
    drawn anew each time, so that networks do not grow with the federation. Static data are one time
    step, in which there is no knowledge.

    Attributes:
        policy: how clients train otherwise; see there for what is held of earlier time steps.
        least: entries of adaptive parts up to this size are left out.
    """

    policy: APD
    least: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.least < float("inf"):
            raise ValueError(f"least must be finite and at least 0, got {self.least}")

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Renew the knowledge at the start of a time step, then train."""
        begins = hypothesis.state.get("step", 0) < context.step
        if begins and len(hypothesis.clusters) > 1:
            clusters = self._informed(hypothesis, context)
            hypothesis = replace(hypothesis, clusters=clusters)
        return (yield from self.policy.associate(hypothesis, context))

    def _informed(self, hypothesis: Hypothesis, context: RoundContext) -> tuple[Posterior, ...]:
        """The clusters with new knowledge, and without attention."""
        model, clusters = context.model, hypothesis.clusters
        association = hypothesis.association
        seen = [c for c in association.clients if association.label(c) != UNSEEN]
        random = generator(context.seed, context.round, "knowledge")
        drawn = sorted(random.permutation(len(seen))[: num_slots(model)])
        sources = [clusters[association.label(seen[index])] for index in drawn]
        buffers = clusters[0].buffers(model)
        parts = [source.mean(model) for source in sources]
        known = knowledge_of(model, parts, buffers, self.least)
        keys = [source.key for source in sources]
        whole = clusters[0].with_parameters(
            model, lineage_key(KNOWLEDGE, *keys), clusters[0].mean(model), known
        )
        return tuple(_renewed(cluster, whole, context) for cluster in clusters)


def _renewed(cluster: Posterior, known: Posterior, context: RoundContext) -> Posterior:
    """A cluster with the knowledge of another model, and without attention."""
    model, mean = context.model, cluster.mean(context.model)
    key = lineage_key("without attention", cluster.key)
    fresh = cluster.with_parameters(
        model, key, without_attention(model, mean), cluster.buffers(model)
    )
    return cluster.with_blocks({KNOWLEDGE: known, OWN: fresh})
