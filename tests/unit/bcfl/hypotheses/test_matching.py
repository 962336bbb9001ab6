from itertools import permutations

import numpy as np
import pytest

from bcfl.hypotheses.matching import best_matching


@pytest.mark.parametrize("seed", range(10))
def test_the_matching_gains_most_of_all(seed):
    gain = np.random.default_rng(seed).normal(size=(5, 5))
    found = best_matching(gain)
    assert sorted(found) == list(range(5))
    best = max(sum(gain[i, p[i]] for i in range(5)) for p in permutations(range(5)))
    assert gain[np.arange(5), found].sum() == pytest.approx(best)
