"""Checks of the arguments of a federation and of its runs; their errors name the argument."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from numbers import Real
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module

from bcfl.architecture.layout import Part
from bcfl.architecture.model import Model
from bcfl.executors.privacy import Privacy
from bcfl.policies import Centralised, Policy
from bcfl.rounds.method import Method
from bcfl.runtime import as_given, check_whole

if TYPE_CHECKING:
    from bcfl.executors import Executor
    from bcfl.rounds.running import OnRound


class SameStartWarning(UserWarning):
    """Initial networks that should differ are the same."""


def check_starts(method: Method, model: Model, num_clients: int) -> None:
    """Warn where a method begins with several networks, and the model has one initialisation.

    A module that is given in place of what builds it keeps its weights, and so does a function that
    loads pretrained ones.

    Args:
        method: the method.
        model: the architecture.
        num_clients: clients of the federation.

    Warns:
        SameStartWarning: all networks would be the same.
    """
    networks = method.starts * (1 if method.common_start else method.first_clusters(num_clients))
    if networks > 1 and torch.equal(model.initial(0)[0], model.initial(1)[0]):
        warnings.warn(
            f"{method.name} begins with {networks} networks of different weights, but the model "
            f"always has the same; {_ways_to_vary(model)}",
            SameStartWarning,
            stacklevel=5,  # the caller of Federation
        )


def check_layers(policy: Policy, model: Model) -> None:
    """Check that the network has the layers by which clients are clustered.

    Args:
        policy: that of the method, perhaps with others inside.
        model: the architecture.

    Raises:
        ValueError: it has none of them.
    """
    for one in _policies(policy):
        part = getattr(one, "part", None)
        if isinstance(part, Part) and not model.chosen(part).any():
            other = "classifier" if part.layers == "body" else "body"
            raise ValueError(
                f"clustered_layers must choose layers that the network has, got {part.layers!r} of "
                f"the network {model.name!r}, all of whose parameters are the {other}; choose 'all'"
            )


def _policies(policy: Any) -> Iterator[Any]:  # noqa: ANN401 - of any class with `associate`
    """A policy, and those that it wraps or combines."""
    yield policy
    for name in (each.name for each in fields(policy)) if is_dataclass(policy) else ():
        value = getattr(policy, name)
        for each in value if isinstance(value, tuple) else (value,):
            if hasattr(each, "associate"):
                yield from _policies(each)


def _ways_to_vary(model: Model) -> str:
    """How the weights of a model, which are always the same, come to differ."""
    if model.is_shared:
        return (
            "give a function that builds it, such as `lambda: Network()`, so that weights are "
            "drawn from the seed"
        )
    return (
        f"the code that builds {model.name!r} should neither call torch.manual_seed nor load "
        "weights, so that weights are drawn from the seed of the federation"
    )


def knowing_groups(method: Method, groups: Sequence[int | None]) -> Method:
    """The method that is told the clients' true groups, where it is a bound that needs them.

    Raises:
        ValueError: it does, and no client has one.
    """
    policy = method.policy
    if not isinstance(policy, Centralised):
        return method
    if policy.by_group and all(group is None for group in groups):
        raise ValueError(
            f"{method.name!r} pools the samples of each true group, and no client has one; give "
            "the clients their groups, as in ClientData.from_arrays(..., group=0), or use "
            "'centralised', which pools all samples"
        )
    return replace(method, policy=policy.of_groups(groups))


def checked_seed(seed: int) -> int:
    """The seed.

    Raises:
        ValueError: it is not a whole number, or negative.
    """
    check_whole("seed", seed, 0)
    return int(seed)


def checked_rounds(rounds: int, belief_every: int | None) -> int:
    """The number of rounds.

    Args:
        rounds: rounds in all.
        belief_every: rounds between those with beliefs; None is the last alone, 0 none.

    Raises:
        ValueError: one of them is not a whole number, `rounds` below 1 or `belief_every` below 0.
    """
    check_whole("rounds", rounds)
    if belief_every is not None:
        check_whole("belief_every", belief_every, 0, other=" or None")
    return int(rounds)


def checked_shares(client_fraction: float, drop_out: float) -> tuple[float, float]:
    """Both shares.

    Args:
        client_fraction: of the clients that take part in a round.
        drop_out: probability that one of these drops out.

    Raises:
        ValueError: one of them is out of range.
        TypeError: one of them is not a number.
    """
    for name, share in (("client_fraction", client_fraction), ("drop_out", drop_out)):
        if not isinstance(share, Real):
            raise TypeError(f"{name} must be a number, got {share!r}")
    if not 0 < client_fraction <= 1:
        raise ValueError(f"client_fraction must lie in (0, 1], got {client_fraction}")
    if not 0 <= drop_out <= 1:
        raise ValueError(f"drop_out must lie between 0 and 1, got {drop_out}")
    return client_fraction, drop_out


def checked_switches(*, evaluate: bool, objectives: bool) -> tuple[bool, bool]:
    """Both switches.

    Raises:
        TypeError: one of them is neither True nor False.
    """
    for name, value in (("evaluate", evaluate), ("objectives", objectives)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, got {value!r}")
    return evaluate, objectives


def checked_privacy(privacy: Privacy | None) -> Privacy | None:
    """How clients randomise what they send.

    Raises:
        TypeError: it is of another type.
    """
    if not isinstance(privacy, Privacy | None):
        raise TypeError(f"privacy must be a bcfl.Privacy or None, got {as_given(privacy)}")
    return privacy


def check_callables(on_round: OnRound | None, executor: Executor | None) -> None:
    """Check the callback and the executor of a run, where they are given.

    Raises:
        TypeError: one of them cannot be called, or has no `answer`.
    """
    if on_round is not None and not callable(on_round):
        raise TypeError(f"on_round must be a function of state and record, got {on_round!r}")
    if isinstance(executor, type) or (executor is not None and not hasattr(executor, "answer")):
        raise TypeError(
            f"executor must have `answer`, got {as_given(executor)}; names and options of "
            "executors go to Federation(..., executor=...)"
        )


def check_order(model: object, method: object) -> None:
    """Check that model and method are not in each other's place.

    Raises:
        TypeError: they are.
    """
    policy = hasattr(model, "associate") and not isinstance(model, type | Module)
    if isinstance(model, Method) or policy:
        raise TypeError(
            f"model and method seem to be swapped, got {shortened(model)} as model and a "
            f"{type(method).__name__} as method: Federation(clients, model, method)"
        )


def as_method(method: Method | Policy) -> Method:
    """The method, or the one of a policy, which is tracked greedily.

    Raises:
        TypeError: it is neither.
    """
    if not isinstance(method, Method) and (
        isinstance(method, type) or not hasattr(method, "associate")
    ):
        raise TypeError(
            f"method must be a method or a policy with `associate`, got {as_given(method)}"
        )
    return method if isinstance(method, Method) else Method(policy=method)
