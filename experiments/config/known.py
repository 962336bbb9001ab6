"""Names of partitions and models, by which they are checked before torch is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from bcfl.methods import reference_of, registered
from experiments.config.options import chosen

PARTITIONS = (
    "two-stage-dirichlet",
    "dirichlet",
    "n-class",
    "cluster-n-class",
    "label-proportions",
    "rotated",
    "by-domain",
    "skewed-sizes",
    "iid",
    "ocfl",
    "shared-ocfl",
    "label-halves",
    "shifted-labels",
    "noisy",
    "merged-classes",
    "writers",
    "stream",
)
MODELS = (
    "mlp",
    "fashion-cnn",
    "linear",
    "fashion-cnn-gn",
    "tissue-cnn",
    "cifar-cnn",
    "path-cnn",
    "digits-five-cnn",
    "amazon-mlp",
    "ocfl-cnn",
    "resnet34",
    "faacl-mlp",
    "faacl-cnn",
    "bilstm",
)


def check_known(what: str, name: str, known: Sequence[str]) -> None:
    """Check that a partition or model is known, registered by a package, or `module:object`.

    Args:
        what: `partition` or `model`.
        name: name to look up.
        known: names of those that come with the program.

    Raises:
        ValueError: it is none of these; the message has the nearest name.
    """
    if name not in known and reference_of(name, f"{what}s") is None:
        chosen(what, name, dict.fromkeys((*known, *registered(f"{what}s"))))
