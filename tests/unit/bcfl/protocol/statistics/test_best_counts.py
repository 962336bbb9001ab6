import numpy as np

from bcfl.protocol.statistics.best_counts import BestCounts

NAN = float("nan")


def test_the_first_of_equals_is_the_best_and_nan_never_is():
    losses = np.array([[0.2, NAN, 0.5, NAN], [0.2, 0.9, 0.1, NAN], [0.3, np.inf, NAN, np.inf]])
    found = BestCounts.of(losses)
    assert found.counts.tolist() == [1, 2, 0]
    assert found.num_samples == 4


def test_the_importance_of_fedsofts_clusters():
    """Five samples, three clusters: 3 and 2 samples, and none for the third."""
    losses = [[0.2, 0.5, 0.9, 0.1, 0.7], [0.4, 0.3, 0.8, 0.2, 0.9], [0.9, 0.9, 0.9, 0.9, 0.95]]
    assert BestCounts.of(np.array(losses)).counts.tolist() == [3, 2, 0]
