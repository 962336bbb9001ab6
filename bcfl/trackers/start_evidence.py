"""Evidence of the starts of a race, and their weights.

In each round a client's log evidence of a start is that of its samples, its membership summed out,
over the belief temperature: starts are compared by samples that are as little independent as those
that tell memberships. Once the race has begun, the mean over its rounds counts. Late in a run
networks fit the data of groups that do not belong together nearly as well; how well they did on the
way is part of the marginal likelihood (Lyle et al., "A Bayesian perspective on training speed and
model selection", 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import assignment
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Costs
from bcfl.runtime.seeds import generator

KEY = "start_evidence"
"""Key of the summed evidence in the state of a hypothesis."""

Rows = Mapping[str, list[float]]
"""For each client, the number of rounds, and the four summed parts of its log evidence, nats."""


def with_evidence(
    chosen: Sequence[Candidate], context: RoundContext, first_round: int
) -> list[Candidate]:
    """The candidates, with the evidence of this round added to that of the race so far.

    Rounds in which a client has not scored all starts, such as those that some of them spend on a
    warm-up, do not count for it: starts are compared over the same rounds.

    Args:
        chosen: the candidate of each start, with its costs.
        context: read-only context of the round.
        first_round: of the race; the evidence of earlier rounds, or of another time step of the
            data, is forgotten.
    """
    temperature = _belief_temperature(chosen)
    answered = [set[str]() if one.costs is None else set(one.costs.clients) for one in chosen]
    shared = set.intersection(*answered)
    kept = []
    for one in chosen:
        stored = one.state.get(KEY, {})
        remembered = context.round > first_round and stored.get("step") == context.step
        rows = _added(stored["rows"] if remembered else {}, one.costs, shared, temperature)
        state = {**one.state, KEY: {"step": context.step, "rows": rows}}
        kept.append(replace(one, state=state))
    return kept


def start_weights(chosen: Sequence[Candidate], context: RoundContext) -> NDArray[np.float64]:
    """Pseudo-BMA+ weights by the mean evidence of each client.

    Args:
        chosen: the candidate of each start, with its evidence.
        context: read-only context of the round.

    Returns:
        float64 of shape (starts,), summing to 1; uniform where no client has answered all starts.
    """
    evidence = [one.state[KEY]["rows"] for one in chosen]
    clients = sorted(set.intersection(*(set(rows) for rows in evidence)))
    if not clients or len(chosen) == 1:
        return np.full(len(chosen), 1.0 / len(chosen))
    sums = np.array([[rows[client] for client in clients] for rows in evidence])
    parts = sums[:, :, 1:] / sums[:, :, :1]
    scores: NDArray[np.float64] = (parts - parts[0]).sum(axis=2)
    random = generator(context.seed, context.round, "weights of starts")
    return assignment.pseudo_bma_weights(scores, random)


def _added(before: Rows, costs: Costs | None, shared: Set[str], temperature: float) -> Rows:
    if costs is None:
        return before
    parts = zip(costs.clients, _parts(costs, temperature).tolist(), strict=True)
    return {
        **before,
        **{
            client: [a + b for a, b in zip(before.get(client, [0.0] * 5), (1, *row), strict=True)]
            for client, row in parts
            if client in shared
        },
    }


def _parts(costs: Costs, temperature: float) -> NDArray[np.float64]:
    """(clients, 4) log evidence of each client, as a sum of four numbers, nats.

    Large offsets that starts have in common vanish from their differences part by part. The last
    part is that of the prior, the log of its mean over the clusters that the evidence suggests; it
    is no evidence, and not divided.
    """
    offsets = np.zeros((len(costs.clients), 2)) if costs.offsets is None else costs.offsets
    log_prior = np.zeros_like(costs.values) if costs.log_prior is None else costs.log_prior
    within = np.logaddexp.reduce(-(costs.values + log_prior), axis=1)
    prior = np.logaddexp.reduce(-costs.values, axis=1) - within
    return np.column_stack([-offsets / temperature, within / temperature, prior])


def _belief_temperature(chosen: Sequence[Candidate]) -> float:
    """Mean belief temperature of the starts; 1 where none has one.

    Evidence divided by one number ranks starts as before.
    """
    fitted = [
        np.mean(one.costs.belief_temperature)
        for one in chosen
        if one.costs is not None and one.costs.belief_temperature is not None
    ]
    return float(np.mean(fitted)) if fitted else 1.0
