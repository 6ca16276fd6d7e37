"""Emulated servers of motion-capture systems, written from their published formats without the clients' packages."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the emulators beside this file


@pytest.fixture
def emulated_vicon(monkeypatch):
    """The emulated client in the place of Vicon's, which is not installed; what it sees is taken from it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "emulated_vicon"))
    yield importlib.import_module("pyvicon_datastream")
    del sys.modules["pyvicon_datastream"]
