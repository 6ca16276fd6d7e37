"""Every numbered equation is one function, and the index of the package names it."""

import importlib
import inspect
import pkgutil
import re

import pytest

from softform_core import equations

PAPER_000 = {*range(1, 22), 23, 24, 25, 26, 27, 29, 30, 31}
PAPER_001 = {*range(1, 7)}


def numbered_functions():
    """(paper, number, module.function) of each function whose docstring begins with the number of an equation."""
    for found in pkgutil.iter_modules(equations.__path__):
        module = importlib.import_module(f"{equations.__name__}.{found.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            number = re.match(r"Eq\. (\d+): ", function.__doc__ or "")
            if function.__module__ == module.__name__ and number:
                yield ("001" if found.name == "tip" else "000", int(number[1]), f"{found.name}.{name}")


@pytest.mark.parametrize(("paper", "expected"), [("000", PAPER_000), ("001", PAPER_001)])
def test_every_equation_is_one_function(paper, expected):
    numbers = [number for of, number, _ in numbered_functions() if of == paper]
    assert sorted(numbers) == sorted(expected)


def test_the_index_names_each_function_beside_its_number():
    listed = re.findall(r"^(\d+) .*`([\w.]+)`$", equations.__doc__, flags=re.MULTILINE)
    found = [(str(number), name) for _, number, name in numbered_functions()]
    assert sorted(listed) == sorted(found)


def test_the_equations_need_nothing_but_numpy():
    for found in pkgutil.iter_modules(equations.__path__):
        source = inspect.getsource(importlib.import_module(f"{equations.__name__}.{found.name}"))
        imported = set(re.findall(r"^(?:from|import) ([\w.]+)", source, flags=re.MULTILINE))
        outside = {name for name in imported if not name.startswith(equations.__name__)}
        assert outside <= {"numpy", "numpy.typing", "collections.abc"}
