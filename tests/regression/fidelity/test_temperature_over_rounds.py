"""The clustering temperature is known in every round, also of a method that never clusters.

"One-shot clustering for federated learning", figure 3: the temperature of the common model over all
rounds.
"""

import pytest

from bcfl import Federation


@pytest.mark.parametrize("name", ["fedavg", "ocfl-hdbscan"])
def test_temperature_is_reported_in_every_round(divide, perceptron, build_method, name):
    clients = divide("ocfl", clients=15, samples_per_client=40)
    recipe = build_method(name, local_steps=5, momentum=0.0, learning_rate=0.05)
    run = Federation(clients, perceptron, recipe, seed=0).run(6)
    reported = [record.info.facts.get("clustering_temperature") for record in run.records]
    assert None not in reported
    assert all(0 <= temperature <= 1 for temperature in reported)
