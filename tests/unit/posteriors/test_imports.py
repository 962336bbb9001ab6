import subprocess
import sys

HEAVY = ("laplace", "pyro", "sklearn", "matplotlib", "bcfl", "assignment", "experiments")


def test_importing_every_module_loads_nothing_heavy():
    code = (
        "import importlib, pkgutil, sys, posteriors\n"
        "for found in pkgutil.walk_packages(posteriors.__path__, 'posteriors.'):\n"
        "    importlib.import_module(found.name)\n"
        "assert 'posteriors.curvature.diagonal' in sys.modules\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
