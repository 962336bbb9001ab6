"""Forward passes of which each layer's part is noted, and the check that this part is all of it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from posteriors.curvature.layers.rules import UnsupportedLayerError, named, rule_for
from posteriors.networks.functional import outputs_of, own_copy

PROBED = 3
"""Samples on which a network is checked before its curvature is computed."""
TOLERANCE = {torch.float64: 1e-8}
"""Of squared gradients, relative to those without cancellation; 1e-2 in other dtypes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Call:
    """One layer's part in a forward pass.

    Attributes:
        layer: The layer.
        inputs: What it read, (samples, ...).
        version: How often the inputs had been changed in place by then.
        edge: Its output's place in the graph; None where nothing there needs a gradient.
        output_bytes: Size of its output.
    """

    layer: nn.Module
    inputs: Tensor
    version: int
    edge: GradientEdge | None
    output_bytes: int

    def squares(self, gradients: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Squared per-sample gradients of weight and bias, summed over samples and columns.

        Args:
            gradients: One column each, with respect to the output, (samples, ...).

        Raises:
            UnsupportedLayerError: If the inputs have been changed in place since.
        """
        if self.inputs._version != self.version:
            raise UnsupportedLayerError("the input of a layer is changed in place after its use")
        rule = rule_for(self.layer)
        assert rule is not None
        return rule.squares(rule.prepare(self.layer, self.inputs), gradients)

    def bounds(self, gradients: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """The squares had all summands the same sign: the scale of their rounding errors.

        Args:
            gradients: As for `squares`.
        """
        rule = rule_for(self.layer)
        assert rule is not None
        prepared = rule.prepare(self.layer, self.inputs).abs()
        return rule.squares(prepared, [gradient.abs() for gradient in gradients])


def recorded(
    module: nn.Module, layers: Mapping[nn.Module, str], inputs: Tensor
) -> tuple[Tensor, list[Call]]:
    """Run a network on a copy of its inputs, and note each call of a layer.

    Args:
        module: Network.
        layers: Its layers with parameters, with their names.
        inputs: (samples, ...).

    Returns:
        Outputs (samples, outputs), and the calls in order.

    Raises:
        UnsupportedLayerError: If a layer sees other rows than the samples.
    """
    calls: list[Call] = []

    def note(
        layer: nn.Module, arguments: tuple[Tensor, ...], named: dict[str, Any], output: Tensor
    ) -> None:
        edge = get_gradient_edge(output) if output.requires_grad else None
        source, size = (*arguments, *named.values())[0], output.numel() * output.element_size()
        if len(source) != len(inputs) or len(output) != len(inputs):
            raise UnsupportedLayerError(
                f"layer {layers[layer]!r} sees {len(source)} rows for {len(inputs)} samples; "
                "the first axis must stay that of the samples"
            )
        calls.append(
            Call(
                layer=layer,
                inputs=source.detach(),
                version=source._version,
                edge=edge,
                output_bytes=size,
            )
        )

    hooks = [layer.register_forward_hook(note, prepend=True, with_kwargs=True) for layer in layers]
    try:
        outputs = outputs_of(module, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return outputs, calls


def require_exact_rules(module: nn.Module, layers: Mapping[nn.Module, str], inputs: Tensor) -> None:
    """Check on a few samples that the layers' rules give the squared gradients of the network.

    Each parameter has to enter the graph once, through its layer, and the squared gradients of one
    sample by the rules are compared with those of autograd.

    Args:
        module: Network in evaluation mode.
        layers: Its layers with parameters, with their names.
        inputs: (samples, ...), of which the first and two others are used.

    Raises:
        UnsupportedLayerError: If the rules do not, or samples depend on one another.
    """
    outputs, calls = recorded(module, layers, _spread(inputs.detach()))
    read = uses([outputs])
    called = Counter(call.layer for call in calls)
    for layer, name in layers.items():
        if called[layer] > 1:
            raise UnsupportedLayerError(f"{named(name, layer)} is called twice in a forward pass")
        if any(read[id(parameter)] > 1 for parameter in layer.parameters(recurse=False)):
            raise UnsupportedLayerError(
                f"a parameter of {named(name, layer)} is used twice in a forward pass"
            )
    trained = [p for p in module.parameters() if p.requires_grad]
    if trained and not outputs.requires_grad:
        raise UnsupportedLayerError("module's outputs carry no gradient back to its parameters")
    require_separate_samples(module, inputs)
    if trained:
        _compare(outputs, calls, layers)


def require_separate_samples(module: nn.Module, inputs: Tensor) -> None:
    """Check on a few samples that a network's output for one does not depend on the others.

    Args:
        module: Network in evaluation mode.
        inputs: (samples, ...), of which the first and two others are used.

    Raises:
        UnsupportedLayerError: If it does, or differs from call to call.
    """
    some = _spread(inputs.detach())
    if len(some) < 2:
        return
    with torch.no_grad():
        alone = torch.cat([outputs_of(module, row) for row in torch.split(some, 1)])
    with torch.enable_grad():
        watched = own_copy(some).requires_grad_(some.is_floating_point())
        outputs = outputs_of(module, watched)
    scale = _tolerance(alone) * alone.abs().max()
    mixes = bool(((outputs.detach() - alone).abs() > scale).any()) or _reaches_others(
        outputs, watched
    )
    if mixes and bool(outputs.isfinite().all()):  # with NaN or inf, nothing can be told
        raise UnsupportedLayerError(
            "the outputs for one sample depend on the other samples, or are drawn at random"
        )


def _reaches_others(outputs: Tensor, inputs: Tensor) -> bool:
    """Whether a sample's outputs have a derivative in the inputs of others."""
    if not (inputs.requires_grad and outputs.requires_grad):
        return False
    for index, output in enumerate(outputs):
        (gradient,) = torch.autograd.grad(
            output.sum(), inputs, retain_graph=True, allow_unused=True
        )
        if gradient is not None:
            gradient[index] = 0
            if bool(gradient.any()):
                return True
    return False


def _spread(inputs: Tensor) -> Tensor:
    """The first and two other samples; all where there are fewer."""
    return inputs[:: max(1, (len(inputs) - 1) // (PROBED - 1))][:PROBED]


def _tolerance(values: Tensor) -> float:
    return TOLERANCE.get(values.dtype, 1e-2)


def uses(tensors: Iterable[Tensor], ends: Collection[Node] = ()) -> Counter[int]:
    """How often each leaf tensor, by its id, is read in the graph of some tensors, nearest first.

    Args:
        tensors: Their graphs are followed.
        ends: Nodes beyond which they are not.
    """
    found: Counter[int] = Counter()
    waiting = deque({tensor.grad_fn: None for tensor in tensors if tensor.grad_fn not in ends})
    seen: set[Node | None] = {None, *waiting, *ends}
    while waiting:
        start = waiting.popleft()
        for node, _ in () if start is None else start.next_functions:
            if node is not None and hasattr(node, "variable"):
                found[id(node.variable)] += 1
            elif node not in seen:
                seen.add(node)
                waiting.append(node)
    return found


def _compare(outputs: Tensor, calls: Sequence[Call], layers: Mapping[nn.Module, str]) -> None:
    """Compare the rules' squared gradients of the first sample with those of autograd."""
    column = torch.zeros_like(outputs)
    column[0] = torch.linspace(0.5, 1.5, column[0].numel()).to(column).view_as(column[0])
    reached = {call.layer: call for call in calls if call.edge is not None}
    wanted = [
        (layer, index, parameter)
        for layer in layers
        for index, parameter in enumerate((layer.weight, getattr(layer, "bias", None)))
        if isinstance(parameter, nn.Parameter) and parameter.requires_grad
    ]
    edges = [call.edge for call in reached.values() if call.edge is not None]
    gradients = torch.autograd.grad(
        outputs, [*edges, *(get_gradient_edge(p) for *_, p in wanted)], column, allow_unused=True
    )
    at_output = dict(zip(reached, gradients, strict=False))
    for (layer, index, _), gradient in zip(wanted, gradients[len(edges) :], strict=True):
        if gradient is None:
            continue
        sent = at_output.get(layer)
        if sent is None:
            raise UnsupportedLayerError(
                f"parameters of {layers[layer]!r} are used without calling the layer"
            )
        squares, bounds = (
            reached[layer].squares([sent])[index],
            reached[layer].bounds([sent])[index],
        )
        apart = (squares.flatten() - gradient.square().flatten()).abs()
        if bool((apart > _tolerance(apart) * bounds.flatten()).any()):
            raise UnsupportedLayerError(
                f"layer {layers[layer]!r} has other gradients than its rule gives"
            )
