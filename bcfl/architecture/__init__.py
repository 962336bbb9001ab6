"""Networks as named parameter blocks on one flat vector, and their scopes.

Layout and the architectures that need blocks of their own: additive (CAM), decomposed (APD,
FedWeIT), dropout. Concrete networks are in `experiments.models`.
"""

from bcfl.architecture.additive import AdditiveNetwork, additive
from bcfl.architecture.decomposition import Decomposition, decomposed
from bcfl.architecture.dropout import with_dropout
from bcfl.architecture.fedweit import Transfer, transferring
from bcfl.architecture.layout import Layers, Layout, Slot
from bcfl.architecture.model import BlockSpec, Likelihood, Model, Scope

__all__ = [
    "AdditiveNetwork",
    "BlockSpec",
    "Decomposition",
    "Layers",
    "Layout",
    "Likelihood",
    "Model",
    "Scope",
    "Slot",
    "Transfer",
    "additive",
    "decomposed",
    "transferring",
    "with_dropout",
]
