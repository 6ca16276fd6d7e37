"""How many faults that are put into the files that decide about motion are noticed by their fast tests."""

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import softform_actuation
from softform_core.errors import SoftformError

FILES = ("lease", "supervisor", "latch", "commands", "guardian")
TESTS = (
    "conftest.py",
    "stepped_device.py",
    "test_lease.py",
    "test_latch.py",
    "test_regulation.py",
    "test_command_limits.py",
    "test_making_safe.py",
    "test_supervisor.py",
    "test_supervisor_faults.py",
    "test_guardian_guard.py",
)

BY_PROCESSES = {"xǁGuardianǁ_start", "x__reap", "x_protect", "x_protection_of", "x_main"}
"""What starts processes and asks the system: tested with real ones, which takes too long for each mutant."""

_LIBRARIES = Path(sys.prefix) / "mutation"
_OF_ROS = ("launch_testing", "launch_ros", "launch_pytest")
_OPTIONS = [f"-pno:{plugin}" for plugin in ("cacheprovider", "dash", "zarr", *_OF_ROS)]
_CONFTEST = """
import hypothesis
hypothesis.settings.register_profile("mutation", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("mutation")
"""
_HUNG_SECONDS = 4.0
_HUNG_TIMES = 4.0


def measure(jobs: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the figures of each file, by its name; `survivors` names each mutant that no test noticed.

    Args:
        jobs: Processes at the same time.
        say: Called with what is being done.

    Raises:
        SoftformError: If the libraries are not installed, or the tests fail without a mutation.
    """
    if not (_LIBRARIES / "mutmut").is_dir():
        raise SoftformError(
            f"There is no mutmut in {_LIBRARIES}.",
            "Install it: .venv/bin/pip install --no-deps --require-hashes --target .venv/mutation "
            "-r requirements-mutation.txt",
        )
    package = Path(softform_actuation.__file__).resolve().parent
    with tempfile.TemporaryDirectory(prefix="softform_mutation_") as name:
        work = Path(name)
        _copy(package, work)
        say("Branch coverage of the tests …")
        coverage = _coverage(work)
        say("Mutants …")
        _python(work, Path(__file__).with_name("mutants.py"), str(jobs), "mutants.json")
        mutants = json.loads((work / "mutants.json").read_text(encoding="utf-8"))
        sources = {file: (work / package.name / f"{file}.py").read_text(encoding="utf-8") for file in FILES}
    return {
        file: _figures(file, sources[file], [rest for stem, *rest in mutants if stem == file], coverage[file])
        for file in FILES
    }


def _copy(package: Path, work: Path) -> None:
    """Lay out package, tests and settings as mutmut wants them; nothing is mutated where a driver may import it."""
    shutil.copytree(package, work / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    (work / "test").mkdir()
    for test in TESTS:
        shutil.copy(package.parent / "test" / test, work / "test")
    with (work / "test" / "conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(_CONFTEST)
    for file in FILES:
        path = work / package.name / f"{file}.py"
        path.write_text(_without_property_decorators(path.read_text(encoding="utf-8")), encoding="utf-8")
    settings = {
        "source_paths": [package.name],
        "only_mutate": [f"{package.name}/{file}.py" for file in FILES],
        "pytest_add_cli_args": _OPTIONS,
        "pytest_add_cli_args_test_selection": ["test"],
        "timeout_constant": _HUNG_SECONDS,
        "timeout_multiplier": _HUNG_TIMES,
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    pytest_lines = ["[tool.pytest.ini_options]", 'addopts = "--import-mode=importlib"']
    (work / "pyproject.toml").write_text("\n".join(["[tool.mutmut]", *lines, *pytest_lines]), encoding="utf-8")


def _without_property_decorators(source: str) -> str:
    """Make properties of methods in the line behind them, which is empty: mutmut leaves out what is decorated."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and [ast.unparse(each) for each in node.decorator_list] == ["property"]:
            lines[node.lineno - 2] = ""
            lines[node.end_lineno or 0] = f"    {node.name} = property({node.name})"
    return "\n".join(lines)


def _coverage(work: Path) -> dict[str, float]:
    files = ",".join(f"*/softform_actuation/{file}.py" for file in FILES)
    _python(work, "-m", "coverage", "run", "--branch", f"--include={files}", "-m", "pytest", "-q", *_OPTIONS, "test")
    _python(work, "-m", "coverage", "json", "-q", "-o", "coverage.json")
    found = json.loads((work / "coverage.json").read_text(encoding="utf-8"))["files"]
    counts = {Path(path).stem: file["summary"] for path, file in found.items()}
    return {file: counts[file]["covered_branches"] / max(counts[file]["num_branches"], 1) for file in FILES}


def _python(work: Path, *words: str | Path) -> None:
    paths = [str(work), str(_LIBRARIES)] if "coverage" in words else [str(_LIBRARIES)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *words], cwd=work, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SoftformError(
            f"The tests of softform_actuation fail without a mutation: {(done.stdout + done.stderr)[-2000:]}",
            "Correct them first: ./softform test src/softform_actuation.",
        )


def _figures(file: str, source: str, mutants: list[list[str]], coverage: float) -> dict[str, Any]:
    counted = [(outcome, function, diff) for outcome, function, diff in mutants if function not in BY_PROCESSES]
    outcomes = [outcome for outcome, _, _ in counted]
    survivors = [
        _survivor(file, source, function, diff) for outcome, function, diff in counted if outcome == "survived"
    ]
    return {
        "mutants": len(counted),
        "killed": outcomes.count("killed"),
        "survived": len(survivors),
        "timed_out": outcomes.count("timed_out"),
        "score": round(1.0 - len(survivors) / max(len(counted), 1), 4),
        "branch_coverage": round(coverage, 4),
        "survivors": sorted(survivors),
    }


def _survivor(file: str, source: str, function: str, diff: str) -> str:
    """Return `file:line`, and the line as it was and as it was mutated."""
    changed = [line for line in diff.splitlines()[2:] if line[:1] in ("+", "-")]
    before = [line[1:].strip() for line in changed if line[0] == "-"]
    after = [line[1:].strip() for line in changed if line[0] == "+"]
    name = function.removeprefix("x_").rpartition("ǁ")[2]
    begin = next(
        node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name == name
    )
    offset = next(int(line.split()[1].lstrip("-").split(",")[0]) for line in diff.splitlines() if line[:2] == "@@")
    lines = source.splitlines()
    there = [number for number, line in enumerate(lines, 1) if line.strip() == before[0] and number >= begin]
    line = min(there, key=lambda number: abs(number - begin - offset), default=begin)
    return f"{file}.py:{line:03d}: {' '.join(before)}  →  {' '.join(after)}"
