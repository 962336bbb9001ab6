"""Names, keys and whole numbers of configuration."""

from functools import partial

import pytest

from experiments.config.options import check_keys, chosen


def bake(flour, water=2, *, salt=0.1, **spices):
    return flour, water, salt, spices


def test_a_known_name_is_looked_up_and_an_unknown_one_gets_the_nearest():
    assert chosen("recipe", "bread", {"bread": bake, "cake": None}) is bake
    with pytest.raises(ValueError, match=r"unknown recipe 'braed'\. Did you mean 'bread'\? Known"):
        chosen("recipe", "braed", {"bread": bake, "cake": None})
    with pytest.raises(ValueError, match=r"unknown recipe 'xyz'\. Known: bread, cake"):
        chosen("recipe", "xyz", {"bread": bake, "cake": None})


def test_keys_are_those_of_the_signature():
    check_keys("bread", bake, {"flour": 1, "salt": 0})
    check_keys("bread", partial(bake, 1), {"water": 3})
    check_keys("bread", bake, {"flour": 1, "thyme": 1}, also=["thyme"])
    with pytest.raises(ValueError, match=r"bread has no option 'sald'\. Did you mean 'salt'\?"):
        check_keys("bread", bake, {"flour": 1, "sald": 0})
    with pytest.raises(ValueError, match="bread has no option 'flour'"):
        check_keys("bread", partial(bake, 1), {"flour": 3})
    with pytest.raises(ValueError, match="bread lacks flour"):
        check_keys("bread", bake, {"water": 1})
