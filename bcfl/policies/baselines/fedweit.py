"""FedWeIT (Yoon et al., 2021): decomposed clients attend to others' adaptive parameters."""

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
    """APD whose weights also include other clients' adaptive parameters, weighted by attention.

    At each new time step the knowledge base becomes the sparsified adaptive parameters of the end
    of the previous step, and all attention is reset to 0. The authors keep one entry per client;
    here as many as the network has slots, of clients sampled anew each time, so that networks do
    not grow with the federation. Static data are one time step without knowledge.

    Attributes:
        policy: local training, with the penalty for earlier time steps.
        least: magnitude up to which entries of adaptive parameters are set to zero.
    """

    policy: APD
    least: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.least < float("inf"):
            raise ValueError(f"least must be finite and at least 0, got {self.least}")

    def associate(self, hypothesis: Hypothesis, context: RoundContext) -> Steps[Ranking]:
        """Renew the knowledge base when a time step starts, then train.

        See `bcfl.policies.Policy.associate`.
        """
        begins = hypothesis.state.get("step", 0) < context.step
        if begins and len(hypothesis.clusters) > 1:
            clusters = self._informed(hypothesis, context)
            hypothesis = replace(hypothesis, clusters=clusters)
        return (yield from self.policy.associate(hypothesis, context))

    def _informed(self, hypothesis: Hypothesis, context: RoundContext) -> tuple[Posterior, ...]:
        """The clusters with a new knowledge base, and attention reset."""
        model, clusters = context.model, hypothesis.clusters
        association = hypothesis.association
        clients = [c for c in association.clients if association.label(c) != UNSEEN]
        rng = generator(context.seed, context.round, "knowledge")
        sampled = sorted(rng.permutation(len(clients))[: num_slots(model)])
        sources = [clusters[association.label(clients[index])] for index in sampled]
        means = [source.mean(model) for source in sources]
        buffers = knowledge_of(model, means, clusters[0].buffers(model), self.least)
        keys = [source.key for source in sources]
        knowledge = clusters[0].with_parameters(
            model, lineage_key(KNOWLEDGE, *keys), clusters[0].mean(model), buffers
        )
        return tuple(_renewed(cluster, knowledge, context) for cluster in clusters)


def _renewed(cluster: Posterior, knowledge: Posterior, context: RoundContext) -> Posterior:
    """A cluster with a new knowledge base, and attention reset."""
    model, mean = context.model, cluster.mean(context.model)
    key = lineage_key("without attention", cluster.key)
    fresh = cluster.with_parameters(
        model, key, without_attention(model, mean), cluster.buffers(model)
    )
    return cluster.with_blocks({KNOWLEDGE: knowledge, OWN: fresh})
