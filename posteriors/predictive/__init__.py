"""Predictions from posteriors over network parameters.

predictive   `Predictive` and its kinds: `PlugIn`, `Draws`, `MonteCarlo`, `Linearised`
links        `apply_link`: Gaussian logits -> class probabilities; `temper`
"""

from posteriors.predictive.links import Link, apply_link, temper
from posteriors.predictive.predictive import (
    Draws,
    Linearised,
    MonteCarlo,
    OutputGaussian,
    PlugIn,
    Predictive,
)

__all__ = [
    "Draws",
    "Linearised",
    "Link",
    "MonteCarlo",
    "OutputGaussian",
    "PlugIn",
    "Predictive",
    "apply_link",
    "temper",
]
