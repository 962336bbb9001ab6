"""Which of the other toolkits is not there."""

from importlib.util import find_spec


def absent(packages, install):
    """Whether one of the packages cannot be imported; then a line says so.

    Args:
        packages: names as they are imported.
        install: the command that brings them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        print(f"not measured, for want of {' and '.join(missing)}: {install}")
    return bool(missing)
