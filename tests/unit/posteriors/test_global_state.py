import itertools
import warnings

import pytest

from posteriors.global_state import TemporaryChanges, without_warnings


class Setting:
    """A global value, changed for a while by several users of it."""

    def __init__(self):
        self.value = "found"
        self.changes = TemporaryChanges()

    def to(self, value):
        def change():
            before, self.value = self.value, value
            return lambda: setattr(self, "value", before)

        return self.changes.made(change)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_what_was_found_holds_after_the_last(order):
    setting = Setting()
    contexts = [setting.to(index) for index in range(3)]
    for context in contexts:
        context.__enter__()
    left = [0, 1, 2]
    for index in order:
        contexts[index].__exit__(None, None, None)
        left.remove(index)
        assert setting.value == (left[-1] if left else "found")


def test_an_error_inside_a_change_undoes_it():
    setting = Setting()
    with pytest.raises(ArithmeticError), setting.to(1):
        raise ArithmeticError
    assert setting.value == "found"


def test_a_change_that_fails_leaves_nothing_to_undo():
    setting = Setting()

    def failing():
        raise ArithmeticError

    with pytest.raises(ArithmeticError), setting.changes.made(failing):
        pass
    with setting.to(1):
        assert setting.value == 1
    assert setting.value == "found"


def test_warnings_are_ignored_by_two_that_overlap():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        first, second = without_warnings(), without_warnings()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        warnings.warn("unheard", UserWarning, stacklevel=1)
        second.__exit__(None, None, None)
        assert list(warnings.filters) == before
        with pytest.raises(UserWarning):
            warnings.warn("heard", UserWarning, stacklevel=1)
