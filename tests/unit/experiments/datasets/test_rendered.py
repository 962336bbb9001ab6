"""Rendered digits: reproducible, readable, evenly drawn."""

import numpy as np

from experiments.datasets.rendered import _fonts, rendered_digits


def test_they_are_reproducible_and_even():
    first, second = rendered_digits(120, seed=3), rendered_digits(120, seed=3)
    assert np.array_equal(first.inputs, second.inputs)
    assert not np.array_equal(first.inputs, rendered_digits(120, seed=4).inputs)
    assert (first.input_shape, first.num_native_test) == ((3, 32, 32), 20)
    assert np.bincount(first.targets).tolist() == [12] * 10


def test_every_font_has_all_digits():
    for font in _fonts():
        drawn = {bytes(font.getmask(str(digit))) for digit in range(10)}
        assert len(drawn) == 10, font.getname()
