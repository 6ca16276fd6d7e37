"""What `./softform` looks at before Python and ROS start: links to it, the middleware's settings, rights."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = (ROOT / "softform").read_text(encoding="utf-8")
FUNCTIONS = SCRIPT.split('\nif [ "${1:-}" = --yes ]')[0]
SETTINGS = SCRIPT.split("cat <<'SETTINGS'\n")[1].split("\nSETTINGS\n")[0]


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose script prints its root."""
    folder = tmp_path / "a checkout"
    folder.mkdir()
    (folder / "softform").write_text(f'{FUNCTIONS}\necho "$root"\n', encoding="utf-8")
    (folder / "softform").chmod(0o755)
    return folder


def test_a_link_is_followed(checkout, tmp_path):
    """Beside the link a second environment of 3 GB was made."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "one").symlink_to("../a checkout/softform")
    (tmp_path / "bin" / "two").symlink_to("one")
    (tmp_path / "lab").symlink_to(checkout)
    for called in (
        checkout / "softform",
        tmp_path / "bin" / "one",
        tmp_path / "bin" / "two",
        tmp_path / "lab/softform",
    ):
        done = subprocess.run([called], cwd="/", capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(checkout)


def looked_at(tmp_path, functions=FUNCTIONS, **environment):
    """Run the script's look at the middleware; exit status and what it says."""
    script = tmp_path / "softform"
    script.write_text(
        functions.replace('root=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")', f"root={ROOT}")
        + "\nPATH=$venv/bin:$PATH\ncheck_middleware\n",
        encoding="utf-8",
    )
    ours = re.compile(r"^(ROS|RMW|FAST|SOFTFORM)")
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    done = subprocess.run(
        ["bash", script],
        env=kept | {"ROS_LOG_DIR": str(tmp_path / "log")} | environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("name", "value", "step"),
    [
        *(("ROS_DOMAIN_ID", value, "Set it to a number from 0 to 101") for value in ("abc", "-1", "102", "4.0", "1 2")),
        ("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp", "Unset it, or set it to rmw_fastrtps_cpp"),
        ("RMW_IMPLEMENTATION", "fastrtps", "Unset it"),
        ("FASTRTPS_DEFAULT_PROFILES_FILE", "/nowhere/profile.xml", "Correct it, or unset it"),
        ("FASTDDS_DEFAULT_PROFILES_FILE", str(ROOT), "Correct it, or unset it"),
        ("FASTRTPS_DEFAULT_PROFILES_FILE", str(ROOT / "README.md"), "which is not there or no XML file"),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCAL", "Set it to SUBNET, LOCALHOST"),
        ("ROS_LOG_DIR", "/proc/none", "set ROS_LOG_DIR to another folder"),
    ],
)
def test_what_ros_would_stumble_over_is_said_in_one_sentence(tmp_path, name, value, step):
    status, said = looked_at(tmp_path, **{name: value})
    assert status == 1 and value in said and step in said and name in said
    assert "line" not in said and len(said.splitlines()) == 2


def test_another_library_of_ros_is_no_middleware(tmp_path):
    (tmp_path / "ros" / "lib").mkdir(parents=True)
    for name in ("rcl", "rmw_zenoh_cpp"):
        (tmp_path / "ros" / "lib" / f"lib{name}.so").touch()
    given = FUNCTIONS.replace("ros_prefix=/opt/ros/jazzy", f"ros_prefix={tmp_path}/ros")
    assert looked_at(tmp_path, given, RMW_IMPLEMENTATION="rmw_zenoh_cpp") == (0, "")
    assert "RMW_IMPLEMENTATION is 'rcl'" in looked_at(tmp_path, given, RMW_IMPLEMENTATION="rcl")[1]


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"ROS_DOMAIN_ID": ""},
        {"ROS_DOMAIN_ID": "007"},
        {"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp", "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"},
        {"FASTDDS_DEFAULT_PROFILES_FILE": str(ROOT / "config" / "middleware" / "network.xml"), "ROS_DOMAIN_ID": "101"},
    ],
)
def test_what_ros_takes_passes(tmp_path, environment):
    assert looked_at(tmp_path, **environment) == (0, "")


def settings(home, **environment):
    """The environment in which commands of a checkout run."""
    code = f"set -e\nSOFTFORM_HOME='{home}'\n{SETTINGS}\nenv -0"
    kept = {"PATH": os.environ["PATH"], **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run(["bash", "-c", code], env=kept, capture_output=True, text=True, timeout=20, check=True)
    assert not done.stderr
    return dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)


def test_who_may_write_into_the_checkout_keeps_all_there(tmp_path):
    for name in (".venv", "runs"):
        (tmp_path / name).mkdir()
    found = settings(tmp_path, HOME=tmp_path / "me")
    assert (
        found["NUMBA_CACHE_DIR"] == f"{tmp_path}/.venv/numba_cache" and found["ROS_LOG_DIR"] == f"{tmp_path}/runs/log"
    )
    assert "SOFTFORM_RUNS" not in found and "MPLCONFIGDIR" not in found


def test_who_removed_what_runs_wrote_goes_on_writing_there(tmp_path):
    (tmp_path / ".venv").mkdir()
    assert "SOFTFORM_RUNS" not in settings(tmp_path, HOME=tmp_path / "me") and (tmp_path / "runs").is_dir()


def test_who_may_not_has_caches_logs_and_runs_of_their_own(tmp_path):
    """A checkout that is not there cannot be written either; tests run as root, who may write all that is."""
    (tmp_path / "me").mkdir()
    found = settings("/nowhere", HOME=tmp_path / "me")
    own = f"{tmp_path}/me/.local/state/softform"
    assert found["NUMBA_CACHE_DIR"] == f"{own}/numba_cache" and found["WARP_CACHE_PATH"] == f"{own}/warp_cache"
    assert found["SOFTFORM_RUNS"] == f"{own}/runs" and found["ROS_LOG_DIR"] == f"{own}/runs/log"
    assert found["MPLCONFIGDIR"] == f"{own}/matplotlib" and os.access(f"{own}/runs", os.W_OK)
    given = settings("/nowhere", HOME=tmp_path / "me", SOFTFORM_RUNS="/r", XDG_STATE_HOME=tmp_path / "x")
    assert given["SOFTFORM_RUNS"] == "/r" and given["ROS_LOG_DIR"] == "/r/log"
    assert given["NUMBA_CACHE_DIR"] == f"{tmp_path}/x/softform/numba_cache"


def test_without_a_home_they_lie_where_nobody_else_writes(tmp_path):
    found = settings("/nowhere", HOME="/proc/none", TMPDIR=tmp_path)
    own = tmp_path / f"softform-{os.getuid()}"
    assert found["SOFTFORM_RUNS"] == f"{own}/runs" and own.stat().st_mode & 0o777 == 0o700


def test_compiled_kernels_are_taken_along(tmp_path):
    cache = tmp_path / "checkout" / ".venv" / "numba_cache"
    cache.mkdir(parents=True)
    (cache / "kernel.nbi").write_text("compiled")
    (tmp_path / "checkout" / "runs").symlink_to("/proc/none")
    found = settings(tmp_path / "checkout", HOME=tmp_path / "me")
    assert (Path(found["NUMBA_CACHE_DIR"]) / "kernel.nbi").read_text() == "compiled"
