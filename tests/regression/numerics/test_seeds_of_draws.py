"""Draws of a run are seeded by keys of models, which must not follow what `repr` shows."""

import numpy as np
from torch import nn

from bcfl import ClientData, Federation, Model, methods


def test_the_key_of_an_initial_model_never_changes():
    """With the likelihood in `repr`, every annealed draw of every run was another one."""
    clients = [ClientData.from_arrays(n, (np.eye(4, 2), [0, 1, 2, 0])) for n in ("ann", "bob")]
    model = Model(name="own", build=lambda: nn.Linear(2, 3), input_shape=(2,), num_outputs=3)
    federation = Federation(clients, model, methods.build("ifca", num_clusters=2), seed=7)
    first, _ = federation.initial_state().hypotheses.best.clusters
    assert first.key == "e8b3f48a063b20746d1c"
