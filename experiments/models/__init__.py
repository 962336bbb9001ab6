"""Architectures by name and hyperparameters.

Methods with posteriors perform best with networks without running statistics: BatchNorm statistics
have no posterior and are pooled by samples, so that the fused network normalises with statistics of
other networks. `mlp` has no normalisation; `fashion-cnn-gn` uses group normalisation.
"""

from experiments.models.catalogue import MODELS, build, build_for
from experiments.models.convolutions import (
    cifar_cnn,
    digits_five_cnn,
    faacl_cnn,
    fashion_cnn,
    fashion_cnn_gn,
    ocfl_cnn,
    path_cnn,
    tissue_cnn,
)
from experiments.models.perceptrons import amazon_mlp, faacl_mlp, linear, mlp, mlp_of
from experiments.models.recurrent import bilstm
from experiments.models.residual import resnet34

__all__ = [
    "MODELS",
    "amazon_mlp",
    "bilstm",
    "build",
    "build_for",
    "cifar_cnn",
    "digits_five_cnn",
    "faacl_cnn",
    "faacl_mlp",
    "fashion_cnn",
    "fashion_cnn_gn",
    "linear",
    "mlp",
    "mlp_of",
    "ocfl_cnn",
    "path_cnn",
    "resnet34",
    "tissue_cnn",
]
