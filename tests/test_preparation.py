"""What `./softform` installs: packages of the system only when told so, Python packages only by their hashes."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([\w.-]+)==(\S+)")

CHECK = """
id() { echo 0; }
apt-get() { echo "apt-get $*" >>"$calls"; }
missing_from_system() { [ -s "$calls" ] || echo "a C/C++ compiler"; }
check_system
"""


def check_system(tmp_path, answer=None, **environment):
    """Run the script's check as root on a machine that lacks a compiler; exit status, calls of apt-get, and output."""
    script, calls = tmp_path / "softform", tmp_path / "calls"
    functions = (ROOT / "softform").read_text(encoding="utf-8").split('\nif [ "${1:-}" = --yes ]')[0]
    script.write_text(functions + CHECK, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name != "SOFTFORM_YES"}
    ours, theirs = pty.openpty()
    if answer is not None:
        os.write(ours, answer.encode())
    done = subprocess.run(
        ["bash", str(script)],
        stdin=subprocess.DEVNULL if answer is None else theirs,
        stderr=subprocess.PIPE if answer is None else theirs,
        env=kept | {"calls": str(calls)} | environment,
        timeout=20,
    )
    said = (os.read(ours, 100_000) if answer is not None else done.stderr).decode()
    os.close(theirs)
    os.close(ours)
    return done.returncode, calls.read_text().splitlines() if calls.exists() else [], said


def test_without_a_terminal_nothing_is_installed_unasked(tmp_path):
    status, calls, said = check_system(tmp_path)
    assert status == 1 and not calls
    assert "lacks a C/C++ compiler" in said and re.search(r": apt-get install build-essential python3 ", said)


@pytest.mark.parametrize(
    ("answer", "agreed"), [("\n", True), ("y\n", True), ("Yes\n", True), ("n\n", False), ("\4", False)]
)
def test_on_a_terminal_one_line_asks(tmp_path, answer, agreed):
    status, calls, said = check_system(tmp_path, answer)
    assert (status == 0) == agreed == bool(calls)
    assert "with apt-get? [Y/n]" in said


def test_yes_is_told_once(tmp_path):
    status, calls, _ = check_system(tmp_path, SOFTFORM_YES="1")
    assert status == 0 and calls[0].startswith("apt-get update") and "install -y -qq build-essential" in calls[1]
    assert "SOFTFORM_YES=1" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def pins(*names):
    lines = [line for name in names for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    return {re.sub(r"[-_.]+", "-", found[1]).lower(): found[2] for line in lines if (found := PIN.match(line))}


def unhashed(name):
    entries = re.split(r"\n(?=\S)", (ROOT / name).read_text(encoding="utf-8"))
    return [
        entry for entry in entries if PIN.match(entry) and not re.search(r"--hash=sha256:[0-9a-f]{64}(\s|$)", entry)
    ]


@pytest.mark.parametrize(
    ("lock", "lists"),
    [
        ("requirements.lock", ["requirements.txt", "requirements-no-deps.txt"]),
        ("requirements-ros.lock", ["requirements-ros.txt"]),
    ],
)
def test_a_lock_has_just_the_pins_of_its_lists_each_with_its_hashes(lock, lists):
    assert pins(lock) == pins(*lists), "see the head of requirements.in"
    assert not unhashed(lock)


def test_extras_and_builds_of_torch_are_installed_by_hashes():
    for name in (
        "requirements-cpu.lock",
        "requirements-cuda.lock",
        *(path.name for path in ROOT.glob("requirements-*.txt")),
    ):
        if name not in ("requirements-no-deps.txt", "requirements-ros.txt"):
            assert pins(name) and not unhashed(name), name


def test_both_builds_of_torch_are_of_one_version():
    assert pins("requirements-cpu.lock")["torch"] == pins("requirements.lock")["torch"] + "+cpu"


def test_nothing_is_installed_without_hashes():
    script = (ROOT / "softform").read_text(encoding="utf-8")
    assert re.findall(r"-m pip install.*", script) and all(
        "--require-hashes" in each for each in re.findall(r"-m pip install.*", script)
    )
