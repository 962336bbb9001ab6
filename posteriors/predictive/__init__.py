"""Predictions from posteriors over network parameters.

predictive       `Predictive`, as `PlugIn`, `Draws`, `MonteCarlo`, `Linearised`, `ClosedForm`
labels           `EachLabel`: each of several labels as absent or present
links            `apply_link`, `link_logits`: Gaussian logits -> class probabilities; `temper`
mixture          `predict_mixture`: mixture of posteriors, entropy decomposed into three parts
entropy          `split_entropy`, `split_by_group`: entropy decompositions
feature_density  Gaussian densities of features, from additive sums
tuning           `choose`: prior precision and softmax temperature
"""

from posteriors.predictive.labels import EachLabel, absent_and_present
from posteriors.predictive.links import Link, apply_link, link_logits, temper
from posteriors.predictive.mixture import MixturePrediction, predict_mixture
from posteriors.predictive.predictive import (
    ClosedForm,
    Draws,
    Linearised,
    MonteCarlo,
    OutputGaussian,
    PlugIn,
    Predictive,
)
from posteriors.predictive.tuning import (
    HeldOutSums,
    Tuned,
    TuningGrid,
    choose,
)

__all__ = [
    "ClosedForm",
    "Draws",
    "EachLabel",
    "HeldOutSums",
    "Linearised",
    "Link",
    "MixturePrediction",
    "MonteCarlo",
    "OutputGaussian",
    "PlugIn",
    "Predictive",
    "Tuned",
    "TuningGrid",
    "absent_and_present",
    "apply_link",
    "choose",
    "link_logits",
    "predict_mixture",
    "temper",
]
