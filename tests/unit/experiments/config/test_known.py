"""Names that are checked before torch is loaded."""

from experiments.config import known
from experiments.models import MODELS
from experiments.partitions import PARTITIONS


def test_the_names_are_those_of_the_registries():
    assert tuple(MODELS) == known.MODELS
    assert tuple(PARTITIONS) == known.PARTITIONS
