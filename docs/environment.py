"""What notebooks see: the packages of this repository, and the command of their environment."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

STRICT = "errexit:pipefail"
"""A shell stops at the first command that fails, also within a pipeline."""


def prepare(root: Path) -> None:
    """Set the variables of the kernels that run the notebooks.

    Args:
        root: the folder of the repository.
    """
    _put_first("PYTHONPATH", [root])
    _put_first("PATH", folders_of_commands(sys.path))
    os.environ |= {"SHELL": "bash", "SHELLOPTS": STRICT, "IPYTHONDIR": _of_ipython()}


def folders_of_commands(paths: Iterable[str]) -> list[Path]:
    """The folders of the commands that belong to installed packages.

    Args:
        paths: on which Python finds packages; those of an environment are `lib/*/site-packages`,
            also where a `.pth` file of another environment names them.
    """
    packages = [Path(path) for path in paths if Path(path).name == "site-packages"]
    folders = [path.parents[2] / "bin" for path in packages if len(path.parents) > 2]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _of_ipython() -> str:
    """A folder of IPython's files, with what it runs when it starts a notebook."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    startup = Path(folder, "profile_default", "startup")
    startup.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("strict.py"), startup)
    return folder


def _put_first(variable: str, folders: Iterable[Path]) -> None:
    before = os.environ.get(variable, "")
    os.environ[variable] = os.pathsep.join([*map(str, folders), *filter(None, [before])])
