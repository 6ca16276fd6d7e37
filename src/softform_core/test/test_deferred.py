"""Parts of libraries that are loaded only when something asks for them."""

import subprocess
import sys


def run(code: str) -> list[str]:
    """What a Python of its own prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_open3d_comes_without_dash_and_plotly():
    code = "import sys, softform_core, open3d; print(*{'open3d', 'dash', 'plotly'} & sys.modules.keys())"
    assert run(code) == ["open3d"]


def test_an_optimiser_steps_without_what_compiles_which_is_there_for_who_wants_it():
    code = """
import inspect, sys, softform_core, torch
weight = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
optimiser = torch.optim.Adam([weight], lr=0.5)
weight.sum().backward()
optimiser.step()
optimiser.load_state_dict(optimiser.state_dict())
inspect.getmodule(torch)  # which looks through all modules
print(f"{weight.item():.3f}", "sympy" in sys.modules)
import torch._dynamo.config
print(callable(torch._dynamo.optimize), "sympy" in sys.modules)
"""
    assert run(code) == ["0.500", "False", "True", "True"]


def test_scipy_keeps_its_docstrings_and_what_parses_them_is_there_for_who_wants_it():
    code = """
import sys, softform_core, scipy.optimize, scipy.stats
parsing = sys.modules["scipy._lib._docscrape"]
print(scipy.optimize.curve_fit.__doc__.split()[0], scipy.stats.norm.cdf(0.0))
print(*parsing.ClassDoc(scipy.stats.rv_continuous)["Summary"][0].split()[:3])
"""
    assert run(code) == ["Use", "0.5", "A", "generic", "continuous"]


def test_parts_of_numpy_are_there_for_who_wants_them_only():
    code = """
import sys, softform_core, scipy.optimize, numpy as np
parts = ("numpy.f2py", "numpy.ma", "numpy.testing")
print(*[part for part in parts if any(name.startswith(part + ".") for name in sys.modules)], "none")
from numpy.testing import assert_allclose
import numpy.f2py.crackfortran, numpy.ma as ma
print(callable(assert_allclose), callable(np.f2py.crackfortran.crackfortran), ma.masked_array([1, 2], [0, 1]).sum())
print(all(sys.modules[part].__spec__.origin for part in parts))
"""
    assert run(code) == ["none", "True", "True", "1", "True"]
