"""Parts of libraries that are loaded only when something asks for them."""

import subprocess
import sys

BEGIN = "from softform_core.deferred import defer_unused_parts; defer_unused_parts()"


def run(code: str) -> list[str]:
    """What a Python of its own prints, which begins as nodes and commands do."""
    done = subprocess.run([sys.executable, "-c", f"{BEGIN}\n{code}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_open3d_comes_without_dash_and_plotly():
    code = "import sys, open3d; print(*{'open3d', 'dash', 'plotly'} & sys.modules.keys())"
    assert run(code) == ["open3d"]


def test_an_optimiser_steps_without_what_compiles_which_is_there_for_who_wants_it():
    code = """
import inspect, sys, torch
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
import sys, scipy.optimize, scipy.stats
parsing = sys.modules["scipy._lib._docscrape"]
print(scipy.optimize.curve_fit.__doc__.split()[0], scipy.stats.norm.cdf(0.0))
print(*parsing.ClassDoc(scipy.stats.rv_continuous)["Summary"][0].split()[:3])
"""
    assert run(code) == ["Use", "0.5", "A", "generic", "continuous"]


def test_parts_of_numpy_are_there_for_who_wants_them_only():
    code = """
import sys, scipy.optimize, numpy as np
parts = ("numpy.f2py", "numpy.ma", "numpy.testing")
print(*[part for part in parts if any(name.startswith(part + ".") for name in sys.modules)], "none")
from numpy.testing import assert_allclose
import numpy.f2py.crackfortran, numpy.ma as ma
print(callable(assert_allclose), callable(np.f2py.crackfortran.crackfortran), ma.masked_array([1, 2], [0, 1]).sum())
print(all(sys.modules[part].__spec__.origin for part in parts))
"""
    assert run(code) == ["none", "True", "True", "1", "True"]


def test_an_import_changes_nothing_of_the_process():
    """Whoever imports Softform has NumPy, SciPy and PyTorch as these are, and the warnings that were asked for."""
    code = """
import sys, warnings
import numpy.ma, scipy.linalg, torch._dynamo
warnings.simplefilter("error", ResourceWarning)

def libraries():
    return {name: id(it) for name, it in sys.modules.items() if name.split(".")[0] in ("numpy", "scipy", "torch")}

def settings():
    return list(sys.meta_path), list(sys.path_hooks), torch.get_num_threads(), numpy.geterr()

before, filters, loaded = settings(), list(warnings.filters), libraries()
import softform_core
print(settings() == before, warnings.filters == filters, libraries() == loaded)
parts = "robots", "shapes.read", "simulation.generate", "forward.robot_pipeline", "inverse.inverse", "cli.main"
for name in (*parts, "training.learn_forward_kinematics", "training.learn_sim_to_real"):
    __import__(f"softform_core.{name}")
print(settings() == before, loaded.items() <= libraries().items())
print([one for one in warnings.filters if one in filters] == filters)  # SciPy and Zarr have some of their own
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * 6


def test_an_import_puts_nothing_in_the_place_of_a_library():
    code = "import sys, softform_core, scipy.optimize, numpy.ma; "
    code += "print(numpy.ma.__file__ is not None, sys.modules['scipy._lib._docscrape'].__file__ is not None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]
