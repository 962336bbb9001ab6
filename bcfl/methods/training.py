"""Options that all methods share: local training and held-out samples."""

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

from bcfl.runtime.suggestions import as_given

if TYPE_CHECKING:
    from bcfl.protocol.loss_terms import Regularizer
    from bcfl.protocol.objective import Objective


class Common(TypedDict, total=False):
    """Keywords of every recipe."""

    objective: "Objective"
    calibration: float


def flat(*, objective: "Objective | None" = None, calibration: float = 0.0) -> "Objective":
    """Local training of methods without posteriors.

    Args:
        objective: local training, such as `Objective(learning_rate=0.05)`; the recipe sets
            curvature, posterior and regularizers.
        calibration: share of each client's training samples that is set aside for tuning
            predictions, see `bcfl.Run.rule`. On small digits, setting a fifth aside costs more
            likelihood than the temperature gains for trained models; it pays for models that are
            far from trained, or overtrained. Default: measured, studies/calibration ("Calibration
            and out-of-distribution inputs").
    """
    del calibration  # set aside by `registry.Recipe.make`
    return replace(trained(objective), curvature="samples", prior_weight=0.0)


def trained(objective: "Objective | None") -> "Objective":
    """The given local training, or the default.

    Raises:
        TypeError: it is no `Objective`.
    """
    from bcfl.protocol.objective import Objective

    if objective is not None and not isinstance(objective, Objective):
        raise TypeError(
            "objective must be a bcfl.Objective, such as Objective(learning_rate=0.1), got "
            f"{as_given(objective)}"
        )
    return Objective() if objective is None else objective


def with_regularizers(objective: "Objective", *regularizers: "Regularizer") -> "Objective":
    """Local training with regularizers in place of those that it has."""
    return replace(objective, regularizers=regularizers)
