import numpy as np
import pytest
import torch

from bcfl.policies.updates import update_similarity
from bcfl.policies.updates.update_similarity import (
    cosine_distances,
    cosine_similarities,
    cosine_with_mean,
    decomposed_cosines,
    inner_products,
    mean_cosine_differences,
    norm_of_mean,
    norms,
)


def products(*vectors):
    vectors = np.array(vectors, dtype=float)
    return vectors @ vectors.T


def test_slices_of_parameters_change_nothing(monkeypatch):
    random = torch.Generator().manual_seed(0)
    starts = [torch.randn(50, generator=random) for _ in range(4)]
    ends = [torch.randn(50, generator=random) for _ in range(4)]
    updates = np.stack(
        [(e.double() - s.double()).numpy() for s, e in zip(starts, ends, strict=True)]
    )
    wanted = updates @ updates.T
    np.testing.assert_allclose(inner_products(starts, ends), wanted, rtol=1e-12)
    monkeypatch.setattr(update_similarity, "SLICE", 7)
    np.testing.assert_allclose(inner_products(starts, ends), wanted, rtol=1e-12)
    assert inner_products([], []).shape == (0, 0)


def test_updates_are_subtracted_in_double_precision():
    """A small step from a large number, squared in float32, would be lost."""
    start = torch.full((1000,), 1000.0)
    end = start + 2.0**-13
    assert inner_products([start], [end])[0, 0] == pytest.approx(1000 * 2.0**-26, rel=1e-12)


def test_a_zero_update_has_cosine_zero_with_every_other():
    found = products((1, 0), (0, 0), (3, 4), (0, 0))
    cosines = cosine_similarities(found)
    assert cosines.tolist() == [
        [1.0, 0.0, pytest.approx(0.6), 0.0],
        [0.0, 1.0, 0.0, 0.0],
        [pytest.approx(0.6), 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]
    assert not np.diagonal(cosine_distances(found)).any()
    assert cosine_with_mean(found, 1, [0, 2]) == 0.0
    assert cosine_with_mean(found, 0, [1, 3]) == 0.0
    assert np.isfinite(decomposed_cosines(found, 2)).all()
    assert not decomposed_cosines(found, 2)[1].any()
    assert np.isfinite(mean_cosine_differences(found)).all()


def test_updates_that_are_all_zero_have_no_main_direction():
    assert decomposed_cosines(products((0, 0), (0, 0)), 2).shape == (2, 0)


def test_there_are_no_more_main_directions_than_the_updates_span():
    assert decomposed_cosines(products((1, 0, 0), (2, 0, 0), (0, 3, 0)), 3).shape == (3, 2)


def test_lengths():
    found = products((3, 4), (-3, -4), (0, 6))
    assert norms(found).tolist() == [5.0, 5.0, 6.0]
    assert norm_of_mean(found) == pytest.approx(2.0)
    assert norm_of_mean(products((3, 4), (-3, -4))) == 0.0


def test_the_cosine_with_a_mean_is_that_of_the_vectors():
    vectors = np.random.default_rng(1).normal(size=(4, 6))
    mean = vectors[1:].mean(axis=0)
    wanted = vectors[0] @ mean / np.linalg.norm(vectors[0]) / np.linalg.norm(mean)
    assert cosine_with_mean(products(*vectors), 0, [1, 2, 3]) == pytest.approx(wanted)
    pair = np.random.default_rng(2).normal(size=(3, 6))
    assert mean_cosine_differences(products(*pair[:2])).tolist() == [[0, 0], [0, 0]]


def test_cosines_stay_within_their_bounds():
    vectors = np.random.default_rng(0).normal(size=5) * np.array([[1.0], [3.0], [-7.0], [0.1]])
    distances = cosine_distances(products(*vectors))
    assert distances.min() >= 0
    assert distances.max() <= 2
