"""What every package's tests share: a ROS domain of their own, and the marks of tests that take long.

A test file is marked by what it imports and calls: `stack` if it starts nodes or processes, opens terminals or plays a
robot in real time, `training` if it trains a model, fits a plant, simulates a data set or a robot's whole range, has
gmsh mesh a body, or compares with another solver or simulator.
`--quick` leaves out both, unread; `--waiting` and `--computing` divide all files into those that mostly wait and those
that compute. Files and tests that say `long` of themselves, since each starts stacks of its own or a browser on one, or
computes for many seconds, run with `--long`, or where their file is named.
"""

import fcntl
import functools
import os
import random
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import hypothesis
import pytest

pytest_plugins = ["pytester"]

# On a busy machine an example may take any time.
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")

# A shell that runs the tests in the background, or `nohup`, leaves these ignored, and so would all that they start.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL)

_MARKS = {
    "stack": re.compile(
        r"^(?:import|from) (?:subprocess|multiprocessing|rclpy|lifecycle_msgs|pty|console_pages)\b"
        r"|\b(?:ShapeClient|BackgroundNode|PseudoTerminal|QuickRobot|ServoLoop|VirtualRig)\b|\bworkers=|\bprocesses=|\(stack\b",
        re.MULTILINE,
    ),
    "training": re.compile(
        r"\b(?:train\w*|learn_\w+|identify\w*|generate|simulate_tips|fit_tips|fit_actuation\w*|measure_gap)\("
        r"|\[\"(?:train|bench\", \"sim2real)\"|\bimport train\b|\bbench\w* import\b|\bstudies\b|\bmake_frames import\b"
        r"|\bevaluat\w+(?: import |\.)run\b|@needs_gmsh\b|\bik_algorithm2\b"
        r"|\bimportorskip\(\"felupe\"\)|\bexplore\(",
        re.MULTILINE,
    ),
    "long": re.compile(r"^pytestmark = .*\bmark\.long\b", re.MULTILINE),
}

_ENDINGS = {"_node": "stack", "_cluster": "stack", "_whole_range": "training"}

# The range that is free of ephemeral ports on Linux.
_HIGHEST_ROS_DOMAIN = 101


@pytest.fixture(scope="session", autouse=True)
def ros_domain() -> Iterator[int]:
    """Set a ROS domain that no other session has for this one and everything it starts; return it."""
    locks = Path(tempfile.gettempdir()) / f"softform_test_domains_{os.getuid()}"
    locks.mkdir(exist_ok=True)
    with ExitStack() as lasting:
        for domain in random.SystemRandom().sample(range(1, _HIGHEST_ROS_DOMAIN + 1), _HIGHEST_ROS_DOMAIN):
            lock = lasting.enter_context((locks / str(domain)).open("w"))
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
        else:
            pytest.exit(f"Every ROS domain has a session of tests: end some of them (locks in {locks}).", 2)
        middleware = Path(__file__).parent / "config" / "middleware" / "loopback.xml"
        patch = lasting.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("ROS_DOMAIN_ID", str(domain))
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SYSTEM_DEFAULT")
        patch.setenv("FASTRTPS_DEFAULT_PROFILES_FILE", str(middleware))
        yield domain


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep latches and offsets of tests apart from the machine's; return their folder."""
    folder = tmp_path_factory.mktemp("state")
    os.environ["SOFTFORM_STATE"] = str(folder)
    os.environ["SOFTFORM_GUARDIAN"] = ""  # none of the machine's
    os.environ["SOFTFORM_OUTPUT_ROOT"] = tempfile.gettempdir()
    return folder


_CHOICES: dict[str, tuple[str, Callable[[frozenset[str]], bool]]] = {
    "--quick": ("only test files that are marked neither stack nor training", lambda marks: not marks),
    "--waiting": ("only test files that are marked stack", lambda marks: "stack" in marks),
    "--computing": ("only test files that are not marked stack", lambda marks: "stack" not in marks),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose files by their marks."""
    for option, (described, _) in _CHOICES.items():
        parser.addoption(option, action="store_true", help=described)
    parser.addoption("--long", action="store_true", help="test files that are marked long, too")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what the options leave out before it is imported, which takes as long as running it."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    marks = marks_of(collection_path)
    if "long" in marks and not config.getoption("--long"):
        return True
    return (
        None if all(chooses(marks) for option, (_, chooses) in _CHOICES.items() if config.getoption(option)) else True
    )


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test as its file, in whose worker it runs if it says of no other, and leave out the long ones."""
    for item in items:
        for mark in marks_of(item.path):
            item.add_marker(mark)
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if not config.getoption("--long"):
        is_part = any(map(config.getoption, _CHOICES))  # of all tests, for which single files are named, too
        items[:] = [
            item
            for item in items
            if not item.get_closest_marker("long") or (session.isinitpath(item.path) and not is_part)
        ]


@functools.cache
def marks_of(path: Path) -> frozenset[str]:
    """Return the marks of a test file."""
    text = path.read_text(encoding="utf-8")
    marks = {mark for mark, pattern in _MARKS.items() if pattern.search(text)}
    marks |= {mark for ending, mark in _ENDINGS.items() if path.stem.endswith(ending)}
    return frozenset(marks)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell why tests needed a second try: pytest-rerunfailures names them only."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.write_sep("_", f"first try of {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
