"""Methods for tests that run many of them with the same options."""

from bcfl.methods import COMBINATORS, RECIPES, applicable, build

KNOWN = {name for one in (*RECIPES.values(), *COMBINATORS.values()) for name in one.options}


def built(name, **options):
    """The method of a name, with those of the options that it has; some method must have each."""
    assert options.keys() <= {*KNOWN, "objective"}
    return build(name, **applicable(name, options))
