"""What `--quick`, `--waiting`, `--computing` and no `--long` leave out, by the marks of each test's file."""

import re
from pathlib import Path

import numpy  # noqa: F401 - pytester forgets what a test imports first, and NumPy cannot be loaded twice
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def marks_of(request):
    """The function of the conftest in the root."""
    (conftest,) = (p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "marks_of"))
    return lambda name: conftest.marks_of(next(path for room in ("src", "tests") for path in (ROOT / room).rglob(name)))


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("test_stack.py", {"stack"}),
        ("test_demo.py", {"stack"}),
        ("test_actuation_node.py", {"stack"}),
        ("test_train_s2r.py", {"training"}),
        ("test_console_vr.py", {"stack", "long"}),
        ("test_simulation_generate.py", {"stack", "training"}),
        ("test_rig_identify_plant.py", {"training"}),
        ("test_solid_whole_range.py", {"training"}),
        ("test_driver.py", set()),
        ("test_air_faults.py", {"slow"}),
        ("test_architecture.py", set()),
        ("test_simulation_equilibrium.py", set()),
    ],
)
def test_a_file_is_marked_by_what_it_does(marks_of, name, marks):
    assert marks_of(name) == marks


def test_every_test_on_a_stack_is_marked(marks_of):
    on_stacks = [path for path in (ROOT / "tests").glob("test_*.py") if re.search("^STACK = ", path.read_text(), re.M)]
    assert len(on_stacks) >= 3
    assert all("stack" in marks_of(path.name) for path in on_stacks)


def test_quick_reads_only_what_it_runs(pytester):
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(
        test_fast="def test_sum():\n    assert 1 + 1 == 2\n",
        test_process="import subprocess\nraise SystemExit('imported')\n",
        test_learning="raise SystemExit('imported')\ntrain_model(3)\n",
        test_solid="import pytest\npytestmark = pytest.mark.slow\nraise SystemExit('imported')\n",
        test_some_node="raise SystemExit('imported')\n",
    )
    pytester.runpytest_inprocess("--quick").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("arguments", "passed"), [((), 1), (("--long",), 2), (("test_slow.py",), 1), (("--quick",), 1)]
)
def test_what_is_long_runs_where_it_is_asked_for(pytester, arguments, passed):
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    one = "def test_one():\n    pass\n"
    pytester.makepyfile(test_fast=one, test_slow="import pytest\n\npytestmark = pytest.mark.long\n\n" + one)
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=passed)


@pytest.mark.parametrize(("option", "passed"), [("--waiting", 2), ("--computing", 3)])
def test_each_file_either_waits_or_computes(pytester, option, passed):
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    one = "def test_{number}():\n    pass\n"
    process, learning = "import subprocess\n", "def train_model():\n    pass\n\n\n"
    texts = {"process": process, "both": process + learning, "learning": learning, "fast": "", "other": ""}
    pytester.makepyfile(
        **{f"test_{name}": text + one.format(number=number) for number, (name, text) in enumerate(texts.items())}
    )
    pytester.runpytest_inprocess(option).assert_outcomes(passed=passed)


def test_a_group_runs_in_one_process(pytester):
    """Each test would start a stack of its own otherwise; pytest-xdist 3.8 knows no groups under pytest 9.2."""
    one = "import os\nimport pytest\n\n@pytest.mark.xdist_group('g')\n@pytest.mark.parametrize('n', range(4))\n"
    one += "def test_{name}(n):\n    open(os.environ['PYTEST_XDIST_WORKER'], 'w').close()\n"
    pytester.makepyfile(test_one=one.format(name="one"), test_two=one.format(name="two"))
    pytester.runpytest_subprocess("-p", "no:dash", "-n", "2", "--dist", "loadgroup").assert_outcomes(passed=8)
    assert len(list(pytester.path.glob("gw*"))) == 1
