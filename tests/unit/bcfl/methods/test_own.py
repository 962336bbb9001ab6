"""Methods of one's own, by `module:object` or by the entry point of a package."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from bcfl import methods
from bcfl.methods import UnknownMethodError, UnknownObjectError, UnknownOptionError, imported

SOURCE = '''
from dataclasses import dataclass
from bcfl import Method, Objective
from bcfl.policies import FedAvg


@dataclass(frozen=True)
class Patient:
    """Waits."""

    patience: int
    objective: Objective = Objective()
    num_clusters: int = 1

    def associate(self, hypothesis, context):
        return (yield from FedAvg(self.objective).associate(hypothesis, context))


def averaging(objective, rate: float = 0.5, word="a"):
    return Method(policy=FedAvg(objective), name="x")


READY = FedAvg(Objective())
NUMBER = 3


def nothing():
    return None
'''


PACKAGES = {
    "own_package": """
        patient = own_methods : Patient [more]
        slow-finetune = own_methods:READY
        ifca = own_methods:READY
        two = own_methods:READY
        same = own_methods:READY
    """,
    "other_package": """
        two = own_methods:Patient
        same = own_methods:READY
    """,
}


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "own_methods.py").write_text(SOURCE)
    (tmp_path / "own_broken.py").write_text("1 / 0")
    (tmp_path / "own_lacking.py").write_text("import not_there_at_all")
    for package, names in PACKAGES.items():
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[bcfl.methods]\n{names}")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_methods", None)


def test_a_class_a_function_and_an_object_are_methods():
    objective = methods.build("fedavg").policy.objective
    built = methods.build("own_methods:Patient", patience=2, objective=objective)
    assert (built.policy.patience, built.policy.objective) == (2, objective)
    assert built.name == "own_methods:Patient"
    assert methods.build("own_methods:averaging", rate=1, objective=objective).validation == 0
    assert methods.build("own_methods:READY").policy.num_clusters == 1


def test_a_package_registers_names():
    assert methods.registered("methods")["patient"] == "own_methods:Patient"
    assert methods.build("patient", patience=1).name == "patient"
    with pytest.raises(UnknownMethodError, match="Did you mean 'patient'"):
        methods.build("patent")


def test_names_of_packages_that_resemble_or_repeat_others():
    assert methods.named("slow-finetune").suffixes == ()
    assert methods.named("slow-finetune-finetune").suffixes == ("finetune",)
    assert methods.named("ifca").recipe is methods.RECIPES["ifca"]
    assert methods.build("same").policy == methods.build("own_methods:READY").policy
    both = "'two' among methods for own_methods:Patient and own_methods:READY: write which"
    with pytest.raises(UnknownObjectError, match=both):
        methods.named("two")


def test_suffixes_and_options_are_those_of_every_method():
    built = methods.build("own_methods:Patient-finetune", patience=2)
    assert built.name == "own_methods:Patient-finetune"
    assert methods.build("own_methods:READY", calibration=0.2).validation == 0.2
    options = methods.named("own_methods:averaging").options
    assert (options["rate"].default, options["word"].allowed) == (0.5, "any value")
    with pytest.raises(UnknownOptionError, match="Did you mean 'patience'"):
        methods.build("own_methods:Patient", patienc=2)
    with pytest.raises(ValueError, match="patience of own_methods:Patient must be a whole number"):
        methods.build("own_methods:Patient", patience="long")
    with pytest.raises(ValueError, match="needs a value of patience"):
        methods.build("own_methods:Patient")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "own_methods:Patent",
            r"has no object 'Patent'\. Did you mean 'Patient'\? Expected a Meth",
        ),
        ("own_methodz:Patient", "module 'own_methodz' is not among the installed packages"),
        ("own_methods.sub:X", r"module 'own_methods\.sub' is not among"),
        ("own_lacking:X", "imports 'not_there_at_all', which is not installed"),
        ("own_broken:X", "cannot be imported: ZeroDivisionError: division by zero"),
        ("own_methods:", "must be written module:object"),
        ("own_methods:NUMBER", "is of type int, expected a Method"),
        ("own_methods:nothing", "is of type NoneType, expected a Method"),
    ],
)
def test_errors_name_module_object_and_what_was_expected(reference, message):
    with pytest.raises(UnknownObjectError, match=message):
        methods.build(reference)


def test_what_a_module_imports_is_not_suggested(monkeypatch):
    module = ModuleType("own_importing")
    exec("import numpy as np\nfrom torch import nn\nfrom torch.nn import Module", vars(module))
    module.__spec__ = ModuleSpec("own_importing", None)
    monkeypatch.setitem(sys.modules, "own_importing", module)
    for name in ("Nope", "Modul", "nm"):
        with pytest.raises(UnknownObjectError, match=rf"has no object '{name}'\. Expected"):
            imported(f"own_importing:{name}", "method", "a Method")


def test_objects_within_objects_are_found():
    assert imported("own_methods:Patient.associate", "x", "y").__name__ == "associate"
