"""Checks of whole numbers."""

import numpy as np
import pytest

from bcfl.runtime import check_whole


@pytest.mark.parametrize("number", [1, 7, np.int64(3)])
def test_whole_numbers(number):
    check_whole("loaves", number, 1)


@pytest.mark.parametrize("number", [0, -1, 1.0, "1", None, True, float("nan")])
def test_what_is_not_a_whole_number(number):
    with pytest.raises(ValueError, match="loaves must be a whole number of at least 1, got"):
        check_whole("loaves", number, 1)
