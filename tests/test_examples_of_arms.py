"""The example that has two arms shape an object does what it says, on a running stack."""

import re
from importlib import import_module
from pathlib import Path

import pytest

STACK = {"launch": "shaping"}

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]


def example(name):
    """The module of an example."""
    return import_module(name)


def test_an_object_is_bent_by_two_arms(stack, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
    left = example("shape_object").main(iterations=6)
    told = capsys.readouterr().out
    first, *_ = (float(value) for value in re.findall(r"moving: ([\d.]+) mm", told))
    assert left < 3.0 and left < 0.3 * first, told
    assert re.search(r"(done|iterations) after \d looks", told)
