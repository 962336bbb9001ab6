"""Serialisation of a federation's state to JSON and tensors; shared objects stay shared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bcfl.hypotheses.association import Association
from bcfl.hypotheses.history import Proposed, Snapshot
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.protocol.answers import ClientInfo
from bcfl.protocol.requests import Request, Score
from bcfl.protocol.statistics.loss import LossSum
from bcfl.protocol.statistics.statistic import of_numbers, to_numbers
from bcfl.rounds.state import FederationState, Origin
from posteriors import DiagonalGaussian

Structure = dict[str, Any]


class StateWriter:
    """Serialises a state to structure and tensors; each shared object is written once."""

    def __init__(self) -> None:
        self._index: dict[str, dict[int, int]] = {}
        self._items: dict[str, list[Any]] = {}
        self._alive: list[object] = []

    def structure(self, state: FederationState) -> Structure:
        """The state without its tensors, serialisable as JSON."""
        hypotheses = state.hypotheses
        kept = {
            "round": hypotheses.round,
            "planned_rounds": state.planned_rounds,
            "log_captured_mass": hypotheses.log_captured_mass,
            "clients": list(hypotheses.best.association.clients),
            "hypotheses": [self._hypothesis(h) for h in hypotheses],
            "proposals": [self._hypothesis(h) for h in hypotheses.proposals],
            "history": [self._snapshot(s) for s in state.history],
            "client_info": {
                client: {"num_samples": dict(i.num_samples), "input_shape": list(i.input_shape)}
                for client, i in state.client_info.items()
            },
            "scores": [
                [_request(request), asdict(answer)]
                for request, answer in state.scores.items()
                if isinstance(request, Score)
            ],
            "cached": sorted(map(list, state.cached)),
            "releases": dict(sorted(state.releases.items())),
            "origin": asdict(state.origin),
        }
        tables = {name: items for name, items in self._items.items() if name != "tensors"}
        return kept | {"tables": tables}

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name."""
        return {
            str(index): tensor.detach().cpu().contiguous().clone()
            for index, tensor in enumerate(self._items.get("tensors", []))
        }

    def _once(self, table: str, value: object, item: Any) -> int:  # noqa: ANN401 - any JSON
        """The index of a value in a table; `item` is stored the first time."""
        index = self._index.setdefault(table, {})
        items = self._items.setdefault(table, [])
        if id(value) not in index:
            index[id(value)] = len(items)
            items.append(item() if callable(item) else item)
            self._alive.append(value)
        return index[id(value)]

    def _tensor(self, tensor: Tensor) -> int:
        return self._once("tensors", tensor, tensor)

    def _gaussian(self, gaussian: DiagonalGaussian) -> int:
        item = [self._tensor(gaussian.mean), self._tensor(gaussian.precision)]
        return self._once("gaussians", gaussian, item)

    def _block(self, block: Block) -> int:
        parts = [self._gaussian(g) for g in (block.gaussian, block.base, block.prior)]
        moments = None if block.moments is None else self._tensor(block.moments)
        item = [block.key, block.name, *parts, self._tensor(block.buffers)]
        return self._once("blocks", block, [*item, block.is_zero, moments])

    def _posterior(self, posterior: Posterior) -> int:
        return self._once("posteriors", posterior, [self._block(b) for b in posterior.blocks])

    def _association(self, association: Association) -> Structure:
        soft = association.probabilities
        return {
            "clusters": association.num_clusters,
            "labels": self._array(association.labels),
            "probabilities": None if soft is None else self._array(soft),
            "mixed": [[weight, self._association(one)] for weight, one in association.mixed],
        }

    def _belief(self, belief: np.ndarray[Any, Any] | None) -> int | None:
        return None if belief is None else self._array(belief)

    def _array(self, array: np.ndarray[Any, Any]) -> int:
        return self._once("tensors", array, torch.from_numpy(array.copy()))

    def _hypothesis(self, hypothesis: Hypothesis) -> Structure:
        return {
            "clusters": [self._posterior(posterior) for posterior in hypothesis.clusters],
            "association": self._association(hypothesis.association),
            "log_weight": hypothesis.log_weight,
            "parents": list(hypothesis.parents),
            "shares": list(hypothesis.shares),
            "kind": hypothesis.kind,
            "lineage": list(hypothesis.lineage),
            "continues": list(hypothesis.continues),
            "state": _plain(hypothesis.state),
            "kept": {name: self._posterior(p) for name, p in hypothesis.carried_models.items()},
            "belief": self._belief(hypothesis.belief),
            "belief_recorded": hypothesis.belief_recorded,
            "cavities": [
                [client, index, self._posterior(p)]
                for (client, index), p in hypothesis.cavities.items()
            ],
            "scored_by_cavities": hypothesis.scored_by_cavities,
        }

    def _snapshot(self, snapshot: Snapshot) -> Structure:
        return {
            "round": snapshot.round,
            "log_weights": snapshot.log_weights.tolist(),
            "associations": [self._association(a) for a in snapshot.associations],
            "parents": [list(p) for p in snapshot.parents],
            "shares": [list(s) for s in snapshot.shares],
            "proposals": [
                {
                    "association": self._association(p.association),
                    "parent": p.parent,
                    "kind": p.kind,
                }
                for p in snapshot.proposals
            ],
            "log_captured_mass": snapshot.log_captured_mass,
            "beliefs": [self._belief(belief) for belief in snapshot.beliefs],
            "continues": [list(c) for c in snapshot.continues],
        }


def _plain(state: Mapping[str, Any]) -> Structure:
    """A policy's state, which must survive a round trip through JSON.

    Raises:
        TypeError: it does not.
    """
    plain = dict(state)
    try:
        same = json.loads(json.dumps(plain)) == plain
    except (TypeError, ValueError):
        same = False
    if not same:
        raise TypeError(
            "the state of a hypothesis must hold only what JSON gives back as it was (text, "
            f"numbers, lists, dicts with text as keys), got {plain!r}"
        )
    return plain


class StateReader:
    """Restores a state from structure and tensors, with the same shared objects."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors

    def state(self, structure: Structure) -> FederationState:
        """The restored state."""
        tables = structure["tables"]
        gaussians = [
            DiagonalGaussian(self._tensors[str(mean)], self._tensors[str(precision)])
            for mean, precision in tables["gaussians"]
        ]
        blocks = [
            Block(
                key=key,
                name=name,
                gaussian=gaussians[gaussian],
                base=gaussians[base],
                prior=gaussians[prior],
                buffers=self._tensors[str(buffers)],
                is_zero=is_zero,
                moments=None if moments is None else self._tensors[str(moments)],
            )
            for key, name, gaussian, base, prior, buffers, is_zero, moments in tables["blocks"]
        ]
        posteriors = [Posterior(tuple(blocks[b] for b in row)) for row in tables["posteriors"]]
        clients = tuple(structure["clients"])
        rows = structure["hypotheses"], structure["proposals"]
        hypotheses, proposals = (
            tuple(self._hypothesis(clients, posteriors, row) for row in table) for table in rows
        )
        return FederationState(
            hypotheses=HypothesisSet(
                hypotheses, structure["round"], structure["log_captured_mass"], proposals
            ),
            history=tuple(self._snapshot(clients, row) for row in structure["history"]),
            client_info={
                client: ClientInfo(info["num_samples"], tuple(info["input_shape"]))
                for client, info in structure["client_info"].items()
            },
            scores=dict(_score(*row) for row in structure["scores"]),
            planned_rounds=structure.get("planned_rounds"),
            cached=frozenset((client, key) for client, key in structure.get("cached", [])),
            releases=structure.get("releases", {}),
            origin=Origin(**structure.get("origin", {})),
        )

    def _hypothesis(
        self, clients: tuple[str, ...], posteriors: list[Posterior], row: Structure
    ) -> Hypothesis:
        return Hypothesis(
            clusters=tuple(posteriors[p] for p in row["clusters"]),
            association=self._association(clients, row["association"]),
            log_weight=row["log_weight"],
            parents=tuple(row["parents"]),
            kind=row["kind"],
            lineage=tuple(row["lineage"]),
            continues=tuple(row.get("continues", ())),
            state=row["state"],
            shares=tuple(row["shares"]),
            carried_models={name: posteriors[p] for name, p in row["kept"].items()},
            belief=self._belief(row["belief"]),
            belief_recorded=row["belief_recorded"],
            cavities={(client, index): posteriors[p] for client, index, p in row["cavities"]},
            scored_by_cavities=row["scored_by_cavities"],
        )

    def _belief(self, place: int | None) -> np.ndarray[Any, Any] | None:
        return None if place is None else self._tensors[str(place)].cpu().numpy()

    def _association(self, clients: tuple[str, ...], row: Structure) -> Association:
        soft = row["probabilities"]
        return Association(
            clients,
            self._tensors[str(row["labels"])].cpu().numpy(),
            row["clusters"],
            None if soft is None else self._tensors[str(soft)].cpu().numpy(),
            tuple(
                (weight, self._association(clients, one)) for weight, one in row.get("mixed", ())
            ),
        )

    def _snapshot(self, clients: tuple[str, ...], row: Structure) -> Snapshot:
        return Snapshot(
            round=row["round"],
            log_weights=np.array(row["log_weights"]),
            associations=tuple(self._association(clients, a) for a in row["associations"]),
            parents=tuple(tuple(p) for p in row["parents"]),
            log_captured_mass=row["log_captured_mass"],
            proposals=tuple(
                Proposed(self._association(clients, p["association"]), p["parent"], p["kind"])
                for p in row["proposals"]
            ),
            shares=tuple(tuple(s) for s in row["shares"]),
            beliefs=tuple(self._belief(place) for place in row["beliefs"]),
            continues=tuple(tuple(c) for c in row.get("continues", ())),
        )


def _request(request: Score) -> Structure:
    return {**vars(request), "statistic": to_numbers(request.statistic)}


def _score(request: Structure, answer: Structure) -> tuple[Request, LossSum]:
    keys = {name: tuple(request[name]) for name in ("models", "held")}
    statistic = of_numbers(request["statistic"])
    return Score(**{**request, **keys, "statistic": statistic}), LossSum(**answer)
