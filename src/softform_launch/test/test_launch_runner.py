"""The launch runner with real processes: start, output, respawn, stop at any moment, and nothing left behind."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest

from softform_launch.launch_file import ProcessDescription
from softform_launch.launch_guardian import run_guarded
from softform_launch.launch_runner import NOT_BEGUN, run_launch
from softform_launch.process_signals import hold_sigint

STUBBORN = (
    "import signal, time; [signal.signal(s, signal.SIG_IGN) for s in (2, 15)]; print('up', flush=True); time.sleep(99)"
)
POLITE = """
import signal, sys, time
def leave(number, frame):
    print("left by", number, flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, leave)
print("up", flush=True)
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def marker():
    """Return a unique word; at the end, no process may have it in its environment."""
    word = f"softform_test_{os.getpid()}_{random.getrandbits(64):x}"
    yield word
    left = processes_with(word)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert left == []


def processes_with(marker):
    """Return the living processes that inherited `marker` in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("SOFTFORM_TEST_MARKER") == marker and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def python(code, name="node", **keywords):
    return ProcessDescription(name=name, command=(sys.executable, "-c", code), **keywords)


def start(marker, descriptions, guarded=True, impatient=False, ignored=(), **keywords):
    """Start a launch of `descriptions` as a process of its own, with some signals ignored as `nohup` does."""

    def prepare():
        hold_sigint()
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    call = "run_guarded(lambda: run_launch(descriptions))" if guarded else "run_launch(descriptions)"
    shorter = "runner.SIGTERM_AFTER = guardian.SIGTERM_AFTER = 0.5; runner.SIGKILL_AFTER = guardian.SIGKILL_AFTER = 0.5"
    code = f"""
import sys
from softform_launch import launch_guardian as guardian
from softform_launch import launch_runner as runner
from softform_launch.launch_file import ProcessDescription
from softform_launch.launch_guardian import run_guarded
from softform_launch.launch_runner import run_launch
{shorter if impatient else ""}
descriptions = {descriptions!r}
sys.exit({call})
"""
    keywords.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "SOFTFORM_TEST_MARKER": marker},
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=prepare,
        **keywords,
    )


def wait_for_line(process, text):
    seen = []
    for line in process.stdout:
        seen.append(line.decode())
        if text in seen[-1]:
            return seen
    raise AssertionError(f"'{text}' never came in {seen}")


def wait_until_none(marker, seconds=15.0):
    deadline = time.monotonic() + seconds
    while processes_with(marker):
        assert time.monotonic() < deadline, processes_with(marker)
        time.sleep(0.05)


def test_output_carries_the_name_and_failure_the_exit_code(marker):
    descriptions = [python("print('one'); print('two', end='')", "a"), python("raise SystemExit(7)", "b")]
    process = start(marker, descriptions)
    output = process.communicate(timeout=30)[0].decode()
    assert "[a] one\n" in output and "[a] two\n" in output
    assert "[launch] b ended with exit code 7" in output
    assert "\x1b" not in output
    assert process.returncode == 1


def test_all_processes_ending_well_ends_the_launch_well(marker):
    process = start(marker, [python("pass"), python("pass")])
    process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stop_signals_reach_every_node_as_sigint(marker, number):
    process = start(marker, [python(POLITE, "a"), python(POLITE, "b")])
    wait_for_line(process, "up")
    wait_for_line(process, "up")
    process.send_signal(number)
    output = process.communicate(timeout=30)[0].decode()
    assert "[a] left by 2" in output and "[b] left by 2" in output
    assert f"stopping: {number.name} received" in output
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("ignored", "number"),
    [
        ([signal.SIGHUP], signal.SIGHUP),
        ([signal.SIGTERM], signal.SIGTERM),
        ([signal.SIGINT], signal.SIGINT),
    ],
)
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(marker, ignored, number):
    process = start(marker, [python(POLITE)], ignored=ignored)
    wait_for_line(process, "up")
    process.send_signal(number)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM if number != signal.SIGTERM else signal.SIGINT)
    assert "left by 2" in process.communicate(timeout=30)[0].decode()
    assert process.returncode == 0


def test_what_a_shell_ignores_for_all_in_the_background_ends_the_launch(marker):
    process = start(marker, [python(POLITE)], ignored=[signal.SIGINT, signal.SIGQUIT])
    wait_for_line(process, "up")
    process.send_signal(signal.SIGINT)
    assert "left by 2" in process.communicate(timeout=30)[0].decode()


def test_sigkill_of_the_guardian_ends_a_launch_that_ignores_sigterm(marker):
    process = start(marker, [python(POLITE)], ignored=[signal.SIGTERM])
    wait_for_line(process, "up")
    process.kill()
    wait_until_none(marker)


def test_a_node_that_could_not_begin_ends_the_launch_at_once(marker):
    process = start(
        marker, [python(POLITE, "patient"), python(f"print('It is wrong.'); raise SystemExit({NOT_BEGUN})", "rig")]
    )
    output = process.communicate(timeout=30)[0].decode()
    assert "[launch] stopping: rig could not begin: It is wrong.\n" in output
    assert output.endswith("[launch] ended with exit code 1: rig could not begin: It is wrong.\n")
    assert process.returncode == 1


def test_a_node_of_ours_that_still_imports_ends_without_a_traceback(marker, tmp_path):
    """The others have clean-up of their own, perhaps at KeyboardInterrupt alone."""
    ours, other = tmp_path / "softform_ik" / "node", tmp_path / "other" / "node"
    for script in (ours, other):
        script.parent.mkdir()
        script.write_text(f"#!{sys.executable}\nimport time\nprint('imports', flush=True)\ntime.sleep(60)\n")
        script.chmod(0o755)
    process = start(marker, [ProcessDescription(one.parent.name, (str(one),)) for one in (ours, other)])
    wait_for_line(process, "imports")
    wait_for_line(process, "imports")
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=30)[0].decode()
    assert "[softform_ik] Traceback" not in output and "[other] KeyboardInterrupt" in output
    assert "softform_ik was ended by SIGTERM" in output and process.returncode == 0


def test_a_node_that_ignores_signals_is_killed_in_stages(marker):
    process = start(marker, [python(STUBBORN)], impatient=True)
    wait_for_line(process, "up")
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=30)[0].decode()
    assert output.index("sending SIGTERM: node") < output.index("sending SIGKILL: node")
    assert process.returncode == 1


def test_required_node_brings_the_launch_down(marker):
    descriptions = [python(POLITE, "other"), python("raise SystemExit(3)", "core", is_required=True)]
    process = start(marker, descriptions)
    output = process.communicate(timeout=30)[0].decode()
    assert "stopping: core, which is required, ended with exit code 3" in output
    assert process.returncode == 3


def test_respawn_ends_after_its_retries(marker):
    process = start(marker, [python("print('hello')", respawn=True, respawn_delay=0.05, respawn_max_retries=2)])
    output = process.communicate(timeout=30)[0].decode()
    assert output.count("[node] hello") == 3
    assert output.count("starts again") == 2


def test_a_stop_while_a_node_waits_to_respawn(marker):
    process = start(marker, [python("pass", respawn=True, respawn_delay=60.0)])
    wait_for_line(process, "starts again")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_program_that_is_not_there(marker):
    process = start(marker, [ProcessDescription("ghost", ("/nowhere/ghost",), is_required=True), python(POLITE)])
    output = process.communicate(timeout=30)[0].decode()
    assert "ghost cannot be started" in output
    assert process.returncode == 1


def test_children_of_nodes_end_with_them(marker):
    code = "import subprocess, sys; subprocess.Popen(['sleep', '98']); print('up', flush=True); sys.exit(4)"
    process = start(marker, [python(code, is_required=True)])
    process.communicate(timeout=30)
    assert processes_with(marker) == []


def test_daemons_that_leave_their_session_end_too(marker):
    code = "import subprocess; subprocess.Popen(['setsid', 'sleep', '97']); print('up', flush=True)"
    process = start(marker, [python(code)])
    process.communicate(timeout=30)
    assert processes_with(marker) == []


def test_nobody_reading_the_output_does_not_hold_up_the_stop(marker):
    chatter = "import signal; signal.signal(2, lambda *a: exit(0))\nwhile True: print('x' * 200)"
    process = start(marker, [python(chatter)])
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    process.stdout.close()


def test_a_reader_that_goes_away_does_not_end_the_launch(marker):
    process = start(marker, [python(POLITE + "    print('still here')")])
    wait_for_line(process, "up")
    process.stdout.close()
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("victim", ["guardian", "runner", "both"])
def test_sigkill_leaves_nothing(marker, victim):
    process = start(marker, [python(POLITE, "a"), python(POLITE, "b")], impatient=True)
    wait_for_line(process, "up")
    wait_for_line(process, "up")
    (runner,) = psutil.Process(process.pid).children()
    if victim in ("runner", "both"):
        runner.kill()
    if victim in ("guardian", "both"):
        process.kill()
    wait_until_none(marker)
    process.communicate()


@pytest.mark.parametrize("victim", ["guardian", "runner"])
def test_sigkill_leaves_no_stubborn_node(marker, victim):
    process = start(marker, [python(STUBBORN)], impatient=True)
    wait_for_line(process, "up")
    psutil.Process(process.pid).children()[0].kill() if victim == "runner" else process.kill()
    wait_until_none(marker)
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_at_any_moment_leaves_nothing(marker, number):
    """From before the interpreter is up, through fork and registration, to all nodes running."""
    quick = ProcessDescription("sleeper", ("sleep", "96"))
    random_delay = random.Random(number)
    for _ in range(16):
        process = start(marker, [quick] * 4, stdout=subprocess.DEVNULL)
        time.sleep(random_delay.uniform(0.0, 0.45))
        process.send_signal(number)
        process.wait(timeout=30)
        wait_until_none(marker)


def test_signals_during_start_up_of_the_runner_itself(marker, capfd):
    """The same in finer steps: the guardian forks from this warm process, so that starting takes milliseconds."""
    quick = ProcessDescription("sleeper", ("sleep", "95"), {"SOFTFORM_TEST_MARKER": marker})
    random_delay = random.Random(1)
    signals = [signal.SIGINT, signal.SIGTERM]
    for _ in range(40):
        # Blocked until it acts as a fresh program does: pytest's own handler must not swallow a signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        guardian = os.fork()
        if guardian == 0:
            for number in signals:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
            os._exit(run_guarded(lambda: run_launch([quick] * 3)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        time.sleep(random_delay.uniform(0.0, 0.03))
        os.kill(guardian, random_delay.choice(signals))
        os.waitpid(guardian, 0)
        assert processes_with(marker) == []
