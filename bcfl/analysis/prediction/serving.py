"""Models and prediction rules that serve a client, whatever they predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from bcfl.analysis.prediction.mixture import fitting, labelled
from bcfl.architecture.evaluation import network_outputs
from bcfl.architecture.fedweit import compose
from bcfl.data.frames import ordered_columns, without_frame
from bcfl.data.scales import warn_of_new_inputs
from bcfl.data.view import View
from bcfl.executors.arithmetic import computing
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.prediction_rule import PredictionRule, PredictiveName
from bcfl.protocol.statistics.sample_values import sample_losses

if TYPE_CHECKING:
    from bcfl.analysis.run import Run


def network(self: Run, client: str) -> torch.nn.Module:  # noqa: D417 - a method of Run
    """A copy of the network that most probably serves a client, in evaluation mode.

    Its parameters and buffers are the posterior mean of the most probable model after the last
    round, with the client's own blocks where the method has them:
    `torch.save(run.network("anna").state_dict(), "anna.pt")` keeps them, and a network like the one
    that the federation was given loads them. They have the federation's dtype and device.

    The outputs are logits, or numbers. `predict` mixes the predictions of all models that may serve
    the client, with the temperature of `rule`: the two agree where one model is certain, and
    nothing is tuned.

    Networks that methods make of the given one stay as the method has them (`-cam`: the sum of a
    `shared` and an `own` network; `ssgd`: with dropout); decomposed weights (`apd`, `fedweit`) are
    composed. Fine-tuning before tests (`-finetune`) is not included.

    Args:
        client: name of the client; for one never seen, all models of a hypothesis are alike.

    Returns:
        A torch module, which shares no memory with the run.

    Raises:
        ValueError: the client is unknown.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> import torch
        >>> network = run.network("ann")
        >>> network
        Linear(in_features=2, out_features=2, bias=True)
        >>> network(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])).argmax(dim=1)
        tensor([1, 0])
    """
    mixture = Membership.of_client(self.hypotheses, client).mixture
    posterior = max(mixture, key=mixture.__getitem__)
    found = self.model.network(posterior.mean(self.model), posterior.buffers(self.model))
    compose(found)
    return found


def newcomer(
    run: Run,
    adaptation: tuple[ArrayLike | torch.Tensor, ArrayLike | torch.Tensor],
    temperature: float | Literal["mean"],
) -> Membership:
    """Posterior membership of a client that was never seen, by the losses of its samples.

    Args:
        run: the run.
        adaptation: the client's own inputs (few, *input_shape) and targets.
        temperature: divides the losses; see `predict_new`.

    Raises:
        TypeError: `adaptation` is no pair.
        ValueError: inputs, targets or temperature are not valid.
    """
    if not isinstance(adaptation, tuple | list) or len(adaptation) != 2:
        raise TypeError(
            f"adaptation must be the client's inputs and targets, (x, y), got a "
            f"{type(adaptation).__name__}"
        )
    view = _adapting(run, *adaptation)
    warn_of_new_inputs("inputs of adaptation", adaptation[0], view.inputs, run.input_span)
    models = {p.key: p for h in run.hypotheses for p in h.clusters}
    losses = {}
    for key, posterior in models.items():
        network = run.model.network(posterior.mean(run.model), posterior.buffers(run.model))
        with computing("full", view.inputs.device):
            outputs = network_outputs(network, view.inputs)
        losses[key] = float(sample_losses(run.model.likelihood, outputs, view.targets).sum())
        if isnan(losses[key]):
            check_outputs(run, [posterior], view.inputs, "adaptation")
    return Membership.of_newcomer(run.hypotheses, losses, len(view), temperature)


def _adapting(
    run: Run, inputs: ArrayLike | torch.Tensor, targets: ArrayLike | torch.Tensor
) -> View:
    """The samples of a new client; errors say that they are those of `adaptation`."""
    try:
        x = without_frame(inputs, run.columns)
        y = ordered_columns(targets, run.target_columns, "targets")
        return labelled(run.model, x, y, first_mean(run), run.classes)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        hint = "; its inputs and targets seem to be swapped: adaptation=(inputs, targets)"
        told = hint * _are_swapped(run, inputs, targets)
        raise kind(f"adaptation: {error}{told}") from None


def _are_swapped(run: Run, inputs: Any, targets: Any) -> bool:  # noqa: ANN401 - arrays and frames
    """Whether targets, but not inputs, have the shape of inputs."""
    try:
        shapes = [np.shape(values)[1:] for values in (inputs, targets)]
    except (TypeError, ValueError):  # ragged
        return False
    return run.model.reads(shapes[1]) and not run.model.reads(shapes[0])


def memberships_by(by: str) -> Callable[[HypothesisSet, str], Membership]:
    """How the membership of a client is read from the hypotheses.

    Args:
        by: `belief`, or `association`, which trains the client.

    Raises:
        ValueError: it is neither.
    """
    if by not in ("belief", "association"):
        raise ValueError(f"by must be 'belief' or 'association', got {by!r}")
    return Membership.of_client if by == "belief" else Membership.by_association


def rule_of(run: Run, predictive: PredictiveName | PredictionRule | None) -> PredictionRule:
    """A rule, by name or by default that of a run.

    Raises:
        TypeError: it is neither a name nor a rule.
        ValueError: the name is unknown.
    """
    if predictive is None:
        return run.rule
    if isinstance(predictive, PredictionRule):
        return predictive
    if not isinstance(predictive, str):
        raise TypeError(
            "predictive must be a name such as 'plug-in' or a bcfl.PredictionRule, got "
            f"{type(predictive).__name__}; predictions need no targets, and samples to adapt to "
            "are the argument adaptation=(inputs, targets) of predict_new"
        )
    return PredictionRule(predictive=predictive)


def samples_for(run: Run, inputs: ArrayLike | torch.Tensor) -> torch.Tensor:
    """Inputs as a tensor for the models of a run; columns of data frames are read by their names.

    Args:
        run: the run.
        inputs: (samples, *input_shape).

    Raises:
        TypeError: the inputs are masked, complex or no numbers.
        ValueError: the shape or the names of columns do not fit, or an input is not finite.

    Warns:
        InputsWarning: see `bcfl.data.scales.warn_of_new_inputs`.
    """
    x = fitting(run.model, without_frame(inputs, run.columns), first_mean(run))
    warn_of_new_inputs("inputs", inputs, x, run.input_span)
    return x


def check_outputs(
    run: Run, models: Iterable[Posterior], inputs: torch.Tensor, name: str = "inputs"
) -> None:
    """Check that the outputs of models are finite.

    Args:
        run: the run.
        models: those that predict.
        inputs: (samples, *input_shape).
        name: of the argument, for the message.

    Raises:
        ValueError: one is NaN or infinite; the message names the model.
    """
    clusters = run.hypotheses.best.clusters
    for posterior in models:
        network = run.model.network(posterior.mean(run.model), posterior.buffers(run.model))
        finite = network_outputs(network, inputs).flatten(1).isfinite().all(dim=1)
        if not finite.all():
            keys = [cluster.key for cluster in clusters]
            number = keys.index(posterior.key) if posterior.key in keys else None
            which = "a lower hypothesis" if number is None else f"cluster {number}"
            raise ValueError(
                f"{name} must have finite outputs: for {int((~finite).sum())} of {len(inputs)} "
                f"samples the model of {which} gives NaN or infinity"
            )


def first_mean(run: Run) -> torch.Tensor:
    """Parameters of a model of the run, whose device and dtype samples must have."""
    return run.hypotheses.best.clusters[0].mean(run.model)
