"""Predictions of a run for its clients, and for clients that were never seen.

The functions that take a `Run` are its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, isnan
from typing import TYPE_CHECKING, Literal

import torch
from numpy.typing import ArrayLike

from bcfl.analysis.predictions import Prediction, fitting, labelled
from bcfl.analysis.predictions import predict as mixed
from bcfl.architecture.evaluation import network_outputs
from bcfl.architecture.fedweit import compose
from bcfl.data.names import MEMORY, TRAIN, VALIDATION
from bcfl.executors.arithmetic import computing
from bcfl.hypotheses.hypothesis import HypothesisSet
from bcfl.hypotheses.membership import Membership
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.prediction_rule import PredictionRule, PredictiveName
from bcfl.protocol.requests import Exchange, Score, Steps
from bcfl.protocol.statistics.held_out import HeldOutLosses
from bcfl.protocol.statistics.sample_values import sample_losses
from bcfl.runtime import check_whole
from posteriors.curvature.likelihood import Likelihood
from posteriors.predictive import HeldOutSums, TuningGrid, choose
from posteriors.predictive.tuning import TEMPERATURE_SPREAD
from posteriors.torch_state import standard_switches

if TYPE_CHECKING:
    from bcfl.analysis.run import Run


TUNING_GRID = TuningGrid(prior_precisions=tuple(10.0**i for i in range(-1, 7)))
NOISE_GRID = TuningGrid(
    TUNING_GRID.prior_precisions, tuple(10.0 ** (i / 8) for i in range(-40, 33))
)
"""Of numbers, whose temperature is the noise variance."""


def grid_of(likelihood: Likelihood) -> TuningGrid:
    """The values that are tried by default."""
    return NOISE_GRID if likelihood == "gaussian" else TUNING_GRID


def default_rule(self: Run) -> PredictionRule:
    """The default prediction rule of a run.

    Where clients set training samples aside (`calibration` of a method), it is `plug-in` with
    the temperature chosen by sums over those, else plain `plug-in`. Tuned on the same
    sums, the predictives that average over the posterior choose a prior so narrow that they
    predict the same at many times the cost (`experiments.studies.calibration`).
    """
    info = self.state.client_info
    holding = [
        client
        for client in self.clients
        if client not in info or info[client].num_samples.get(VALIDATION, 0) > 0
    ]
    plain = PredictionRule()
    if self.executor is None or not holding:
        return plain
    steps = tuning(plain, self.hypotheses, self.model.likelihood, holding, VALIDATION)
    return self.ask(steps) or plain


@standard_switches()
def predict(  # noqa: D417 - a method of Run
    self: Run,
    client: str,
    inputs: ArrayLike | torch.Tensor,
    predictive: PredictiveName | PredictionRule | None = None,
    *,
    by: Literal["belief", "association"] = "belief",
    step: int | None = None,
) -> Prediction:
    """Predict with the mixture of cluster models under a client's posterior membership.

    Args:
        client: name of the client.
        inputs: (samples, *input_shape).
        predictive: how a cluster's posterior becomes a prediction, by name or as a rule with
            all its numbers, such as `bcfl.Run.tuned` gives; by default `bcfl.Run.rule`.
        by: whether the client is in clusters with the probabilities that are believed (see
            `bcfl.Hypothesis.membership`), or with those of the association by which it trains, as
            in the evaluations of the rounds.
        step: time step of the inputs, from 0, if it is known: `apd` and `fedweit` predict with
            what the client keeps of that step, all others with the models that serve now.

    Returns:
        A `bcfl.Prediction`: probabilities `mean` (samples, classes) as float64, their `entropy`
        (samples,) in nats with its three parts, and the client's `association` (clusters,).

    Raises:
        ValueError: the client or `by` is unknown, the inputs do not fit, `step` is below 0, the
            model predicts numbers, or the predictive needs a curvature that the method has
            not got.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> prediction = run.predict("ann", [[1.0, 0.0], [-1.0, 0.0]])
        >>> prediction.mean.argmax(axis=1)
        array([1, 0])
        >>> prediction.association.round(2)
        array([0., 1.])
    """
    self.hypotheses.best.association.row(client)
    if step is not None:
        check_whole("step", step, 0)
    _check_classes(self, "predict", "see predict_values")
    rule = rule_of(self, predictive)
    membership = memberships_by(by)(self.hypotheses, client)
    mixture = None if step is None else membership.mixture_at(self.model, client, step)
    return _predicted(self, membership, inputs, rule, mixture)


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


@standard_switches()
def predict_new(  # noqa: D417 - a method of Run
    self: Run,
    inputs: ArrayLike | torch.Tensor,
    adaptation: tuple[ArrayLike | torch.Tensor, ArrayLike | torch.Tensor],
    predictive: PredictiveName | PredictionRule | None = None,
    *,
    temperature: float | Literal["mean"] = 1.0,
) -> Prediction:
    """Associate a client that was never seen by a few of its samples, then predict.

    Over all pairs of hypothesis and cluster, p is proportional to the hypothesis' weight,
    divided equally among its clusters, times exp(-summed loss of the samples / temperature).

    Args:
        inputs: (samples, *input_shape) to predict.
        adaptation: the client's own inputs (few, *input_shape) and classes (few,), or labels (few,
            labels).
        predictive: as in `predict`.
        temperature: of the association, not of the predicted probabilities: 1 is Bayes' rule,
            `"mean"` divides the loss by the number of samples. No model was trained on the
            samples, and with 1 the pairs (`bcfl.Prediction.co_association`) were calibrated best.

    Returns:
        A `bcfl.Prediction`, as of `bcfl.Run.predict`. Its `association` (clusters,) is what the
        samples say, and its `co_association` (clients,) with whom the new client shares a cluster.

    Raises:
        ValueError: inputs, classes or temperature are not valid, the model
            predicts numbers, or the predictive needs a curvature that the method has not got.

    Example:
        With `run` of the example of `bcfl.Federation`:

        >>> few = ([[1.0, 0.0], [-1.0, 0.0], [2.0, 1.0]], [0, 1, 0])
        >>> prediction = run.predict_new([[1.5, 0.0]], few)
        >>> prediction.mean.argmax(axis=1)
        array([0])
        >>> prediction.co_association.round()
        array([0., 0., 1., 1.])
    """
    _check_classes(self, "predict_new", "see predict_new_values")
    rule = rule_of(self, predictive)
    membership = newcomer(self, adaptation, temperature)
    predicted = _predicted(self, membership, inputs, rule)
    return replace(predicted, co_association=membership.co_association)


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
    x, y = adaptation
    view = labelled(run.model, x, y, _first_mean(run))
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
    """
    mixture = Membership.of_client(self.hypotheses, client).mixture
    posterior = max(mixture, key=mixture.__getitem__)
    found = self.model.network(posterior.mean(self.model), posterior.buffers(self.model))
    compose(found)
    return found


def tuned(  # noqa: D417 - a method of Run
    self: Run,
    predictive: PredictiveName | PredictionRule = "linearised",
    *,
    clients: Sequence[str] | None = None,
    view: str = VALIDATION,
    grid: TuningGrid | None = None,
) -> PredictionRule:
    """Choose prior precision and temperature by the log loss of held-out samples.

    Of numbers, the temperature is the noise variance, in the square of the targets' unit.

    Each client reports sums over the grid; the sums of all clients decide.

    Args:
        predictive: as in `predict`; a `plug-in` gets a temperature only.
        clients: names of the clients that report sums; None is all.
        view: name of the held-out samples, on which nothing was trained: `validation` for those
            that a method with `calibration` sets aside, `test`, or another view of the clients.
        grid: values to try; by default those of `bcfl.analysis.TUNING_GRID`, or of numbers
            `bcfl.analysis.NOISE_GRID`.

    Returns:
        The rule with the prior precision and temperature of the least summed loss, for
        `run.predict(client, inputs, rule)`.

    Raises:
        ValueError: a client is unknown, no client has such samples, the view holds samples that are
            trained on, the run has no executor, or the predictive needs a curvature that the
            method has not got, or is not of what the model predicts.
    """
    rule = rule_of(self, predictive)
    if str(view).partition(":")[0] in (TRAIN, MEMORY):
        raise ValueError(
            f"view must name samples that were not trained on, got {view!r}, of which the models "
            "would be far too certain; build the method with calibration=0.2 and leave view out, "
            "or name another view"
        )
    if isinstance(clients, str) or not isinstance(clients, Iterable | None):
        raise TypeError(f"clients must be names of clients, got {clients!r}")
    names = self.clients if clients is None else sorted(clients)
    best = self.ask(tuning(rule, self.hypotheses, self.model.likelihood, names, view, grid))
    if best is None:
        raise ValueError(
            f"clients must have samples in the view {view!r}, none has; the option calibration=0.2 "
            "of the method sets a fifth of the training samples aside as 'validation', and view= "
            "names another one, of samples that were not trained on"
        )
    return best


def tuning(
    rule: PredictionRule,
    hypotheses: HypothesisSet,
    likelihood: Likelihood,
    clients: Sequence[str],
    view: str,
    grid: TuningGrid | None = None,
) -> Steps[PredictionRule | None]:
    """Tune prior precision and temperature of a rule on held-out samples.

    Each client reports its log losses over the grid under the mixture of its posterior membership;
    their sum decides, see `posteriors.predictive.choose`.

    Args:
        rule: with the predictive; a `plug-in` has no prior precision.
        hypotheses: with their models.
        likelihood: of these.
        clients: names of the clients that report sums, sorted.
        view: name of the held-out samples.
        grid: values to try; by default those of `grid_of`.

    Returns:
        The rule; None where no client has such samples.

    Raises:
        ValueError: the predictive needs a curvature that no model has got.
    """
    grid = grid_of(likelihood) if grid is None else grid
    plug_in = rule.predictive == "plug-in"
    if plug_in:
        grid = replace(grid, prior_precisions=grid.prior_precisions[:1])
    scores: list[Score] = []
    models: dict[str, Posterior] = {}
    for client in clients:
        mixture = Membership.of_client(hypotheses, client).mixture
        models |= {posterior.key: posterior for posterior in mixture}
        statistic = HeldOutLosses(tuple(mixture.values()), rule, grid)
        scores.append(
            Score(
                client=client, models=tuple(p.key for p in mixture), statistic=statistic, view=view
            )
        )
    rule.check(models.values())
    replies = yield Exchange.of(scores, models.values())
    sums: list[HeldOutSums] = [replies[score] for score in scores if score in replies]
    if not sums:
        return None
    spread = inf if likelihood == "gaussian" else TEMPERATURE_SPREAD
    best = choose(sum(sums[1:], start=sums[0]), spread)
    precision = None if plug_in else best.prior_precision
    return replace(rule, prior_precision=precision, temperature=best.temperature)


def rule_of(run: Run, predictive: PredictiveName | PredictionRule | None) -> PredictionRule:
    """A rule, by name or by default that of a run."""
    if predictive is None:
        return run.rule
    return (
        predictive
        if isinstance(predictive, PredictionRule)
        else PredictionRule(predictive=predictive)
    )


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


def _check_classes(run: Run, name: str, instead: str) -> None:
    if run.model.likelihood == "gaussian":
        raise ValueError(
            f"{name} needs a model of classes or labels, got one of numbers; {instead}"
        )


def _predicted(
    run: Run,
    membership: Membership,
    inputs: ArrayLike | torch.Tensor,
    rule: PredictionRule,
    mixture: Mapping[Posterior, float] | None = None,
) -> Prediction:
    x = fitting(run.model, inputs, _first_mean(run))
    models = membership.mixture if mixture is None else mixture
    with computing("full", x.device):
        try:
            predicted = mixed(run.model, models, membership.association, x, rule)
        except ValueError:
            check_outputs(run, models, x)
            raise
        density = run.feature_density
        if density is None:
            return predicted
        return replace(predicted, ood_score=density.ood_score(membership.association, x))


def _first_mean(run: Run) -> torch.Tensor:
    """Parameters of a model of the run, whose device and dtype samples must have."""
    return run.hypotheses.best.clusters[0].mean(run.model)
