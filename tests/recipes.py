"""Methods for tests that run many of them with the same options."""

from bcfl.methods import applicable, build


def built(name, **options):
    """The method of a name, with those of the options that it has."""
    return build(name, **applicable(name, options))
