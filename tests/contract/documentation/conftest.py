"""The modules that generate pages; they need no Sphinx."""

import importlib
import sys

import pytest

from tests.contract.documentation.places import ROOT


@pytest.fixture(scope="module")
def generated():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module("generated")
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def reference(generated):
    return sys.modules["reference"]


@pytest.fixture(scope="module")
def references(generated):
    return sys.modules["references"]


@pytest.fixture(scope="module")
def pages(generated):
    del generated
    return sys.modules["method_pages"]
