"""Which tests share a stack, and when it is ended and launched anew, by `conftest.py` with launches that are noted."""

from pathlib import Path

import pytest

NOTED_LAUNCHES = """

class NotedLaunch:
    exit_code = None

RunningStack.processes = lambda stack: []

def note(what):
    with open("noted", "a") as file:
        file.write(what + " ")

@contextmanager
def started_stack(run_dir, arguments):
    note("up" + arguments.get("robot", ""))
    yield RunningStack(NotedLaunch(), run_dir)
    note("down")

def bring_to_rest():
    note("rest")

@pytest.fixture(scope="session")
def ros_domain():
    return int(os.environ["ROS_DOMAIN_ID"])
"""
SHARES = "from conftest import note\n\ndef test_it(stack):\n    note('{name}')\n"


@pytest.fixture
def noted(pytester, monkeypatch):
    """Run test files, one worker as under `./softform test`; return what was noted."""
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text(encoding="utf-8") + NOTED_LAUNCHES)
    monkeypatch.setenv("PYTHONPATH", str(pytester.path), prepend=":")
    monkeypatch.setenv("ROS_DOMAIN_ID", "1")

    def run(**texts):
        pytester.makepyfile(**{f"test_{name}": text for name, text in texts.items()})
        result = pytester.runpytest_subprocess("-p", "no:dash", "-n", "1", "--dist", "loadgroup", "--reruns", "1")
        assert result.ret == 0
        return (pytester.path / "noted").read_text().split()

    return run


def test_tests_on_stacks_launched_alike_share_one(noted):
    seen = noted(one=SHARES.format(name="one"), two=SHARES.format(name="two"))
    assert seen == ["up", "one", "rest", "two", "down"]


def test_a_stack_is_down_before_a_test_that_does_not_share_it(noted):
    """Larger groups come first in pytest-xdist, here those that share a stack."""
    shares = SHARES.format(name="one") + "\ndef test_again(stack):\n    note('again')\n"
    own = "from conftest import note\n\ndef test_it():\n    note('own')\n"
    other = 'STACK = {"robot": "B"}\n' + own.replace("own", "other").replace("test_it()", "test_it(stack)")
    seen = noted(one=shares, own=own, other=other)
    assert seen.index("down") == seen.index("again") + 1 and {"own", "upB", "other"} < set(seen)
    assert seen.count("down") == 2 and seen[seen.index("other") + 1] == "down"


def test_a_second_try_has_another_stack(noted):
    fails_once = "from conftest import note\n\ndef test_it(stack):\n    note(name := stack.run_dir.name)\n"
    seen = noted(once=fails_once + "    assert name != 'stack0'\n", two=SHARES.format(name="two"))
    assert seen == ["up", "stack0", "down", "up", "stack1", "rest", "two", "down"]


def test_a_second_try_leaves_stacks_that_tests_start_themselves(noted):
    own = "import pytest\nfrom conftest import note\n\n@pytest.fixture\ndef stack():\n    note('own')\n\n"
    seen = noted(own=own + "def test_it(stack, request):\n    assert request.node.execution_count > 1\n")
    assert seen == ["own", "own"]


def test_a_second_try_leaves_stacks_that_tests_launch_with_arguments_of_their_own(noted):
    own = "import pytest\nfrom conftest import note\n\n@pytest.fixture(scope='module')\ndef robot(stacks):\n"
    own += "    yield stacks.launched_with({'robot': 'B'})\n    stacks.close()\n\n"
    seen = noted(own=own + "def test_it(robot, request):\n    assert request.node.execution_count > 1\n")
    assert seen == ["upB", "down"]
