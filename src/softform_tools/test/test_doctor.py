"""The doctor: what it finds on a machine where something is wrong."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from softform_core.paths import home
from softform_tools import doctor
from softform_tools.doctor import Level


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout with one package, built, and the models that ship."""
    shutil.copytree(home() / "config", tmp_path / "config")
    shutil.copytree(home() / "models", tmp_path / "models")
    (tmp_path / "src" / "pkg").mkdir(parents=True)
    (tmp_path / "src" / "pkg" / "package.xml").write_text("<package/>")
    (tmp_path / "build" / "pkg").mkdir(parents=True)
    (tmp_path / "build" / "pkg" / "colcon_build.rc").write_text("0")
    (tmp_path / "install" / "pkg").mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("# a remark\nclick==0.0.1\nno-such-package==1.0\n")
    (tmp_path / "requirements-ros.txt").write_text("")
    monkeypatch.setenv("SOFTFORM_HOME", str(tmp_path))
    monkeypatch.delenv("SOFTFORM_DATA", raising=False)
    return tmp_path


def findings(check):
    return list(check())


def test_this_machine_gets_a_finding_for_every_check():
    result = CliRunner().invoke(doctor.doctor, ["--json"])
    report = json.loads(result.output)
    assert len({finding["check"] for finding in report["findings"]}) == len(doctor.CHECKS)
    failed = [finding for finding in report["findings"] if finding["level"] == "FAIL"]
    assert report["healthy"] == (not failed)
    assert result.exit_code == (1 if failed else 0)
    assert all(finding["remedy"] for finding in report["findings"] if finding["level"] != "OK")
    (dds,) = [finding for finding in report["findings"] if finding["check"] == "DDS"]
    assert dds["level"] == "OK", dds


def test_packages_that_differ_from_the_lock(checkout):
    (finding,) = findings(doctor.check_packages)
    assert finding.level is Level.FAIL
    assert "2 of 2 differ" in finding.message and "no-such-package missing (pinned 1.0)" in finding.message


def test_of_a_package_that_is_there_twice_the_one_that_is_imported_counts(checkout, monkeypatch):
    """As where the system's packages are seen behind the environment's own."""
    for folder, version_of in (("own", "2.0"), ("system", "1.0")):
        (checkout / folder / f"twice-{version_of}.dist-info").mkdir(parents=True)
        named = f"Name: twice\nVersion: {version_of}\n"
        (checkout / folder / f"twice-{version_of}.dist-info" / "METADATA").write_text(named)
    monkeypatch.setattr(sys, "path", [str(checkout / "own"), *sys.path, str(checkout / "system")])
    (checkout / "requirements.txt").write_text("twice==2.0\n")
    assert findings(doctor.check_packages)[0].level is Level.OK


def extra(checkout, name, *pins, install=""):
    """Write the list of an extra."""
    install = install or f".venv/bin/pip install -r requirements-{name}.txt"
    (checkout / f"requirements-{name}.txt").write_text(f"# Extra: what.\n# Install: {install}\n" + "\n".join(pins))


def test_extras_are_optional_and_told_with_how_they_are_installed(checkout):
    (checkout / "requirements.txt").write_text("click==" + version("click"))
    extra(checkout, "absent", f"click=={version('click')}", "no-such-package==1.0 \\", "    --hash=sha256:00")
    extra(
        checkout,
        "present",
        f"NumPy=={version('numpy')}",
        "colour==1 ; sys_platform == 'win32'",
    )
    assert findings(doctor.check_packages)[0].level is Level.OK
    (finding,) = findings(doctor.check_extras)
    assert (finding.level, finding.message) == (Level.OK, "present is installed; absent is not")
    extra(checkout, "old", "numpy==0.1", "scipy==0.1", install="pip of old")
    warned, _ = findings(doctor.check_extras)
    assert warned.level is Level.WARN and "numpy" in warned.message and warned.remedy == "Run: pip of old"


def test_an_extra_in_a_folder_of_its_own_is_looked_for_there(checkout):
    extra(checkout, "aside", "numpy==0.1", install=".venv/bin/pip install --target aside -r requirements-aside.txt")
    assert findings(doctor.check_extras)[0].message == "aside is not"
    (checkout / "aside" / "numpy-0.1.dist-info").mkdir(parents=True)
    (checkout / "aside" / "numpy-0.1.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 0.1\n")
    assert findings(doctor.check_extras)[0].message == "aside is installed"


def test_the_lists_of_extras_say_how_they_are_installed_and_none_is_needed():
    lists = [path for path in home().glob("requirements-*.txt") if path.stem.split("-", 1)[1] not in ("ros", "no-deps")]
    told = findings(doctor.check_extras)[-1]
    assert len(lists) > 3 and told.message.count(" is ") == len(lists) and told.level is Level.OK
    assert not [finding for finding in findings(doctor.check_packages) if finding.level is Level.FAIL]


def test_the_cure_of_packages_has_the_script_install_them(checkout):
    """Without its stamp the script does not take the environment for prepared."""
    (finding,) = findings(doctor.check_packages)
    stamp = Path(re.search(r"rm (\S+),", finding.remedy)[1])
    assert stamp == checkout / ".venv" / "softform_prepared" / "packages"
    for name in ("requirements", "requirements-ros", "requirements-cpu", "requirements-cuda"):
        (checkout / f"{name}.lock").write_text("")
    script = (Path(__file__).parents[3] / "softform").read_text(encoding="utf-8")
    functions = re.findall(r"^(?:packages_digest|stamp_is|set_stamp)\(\) \{.*?\}$", script, re.MULTILINE | re.DOTALL)
    asked = f"root={checkout}; prepared={stamp.parent}; " + "\n".join(functions)
    stamp.parent.mkdir(parents=True)
    subprocess.run(["bash", "-c", asked + '\nset_stamp packages "$(packages_digest)"'], check=True)
    is_prepared = ["bash", "-c", asked + '\nstamp_is packages "$(packages_digest)"']
    assert subprocess.run(is_prepared).returncode == 0
    stamp.unlink()
    assert subprocess.run(is_prepared).returncode == 1


def test_a_library_of_open3d_that_is_missing(tmp_path):
    (tmp_path / "libusb-1.0.so.0").touch()  # found before the system's, but no library
    code = "from softform_tools.doctor import check_open3d; print(*check_open3d())"
    installed = os.environ.get("LD_LIBRARY_PATH", "")
    for path, says in ((installed, "Level.OK"), (f"{tmp_path}:{installed}", "apt-get install libegl1")):
        environment = os.environ | {"LD_LIBRARY_PATH": path}
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        assert says in found.stdout and found.stderr == ""
    assert "libusb-1.0.so.0" in found.stdout


def test_workspace_built_changed_and_missing(checkout):
    assert findings(doctor.check_workspace)[0].level is Level.OK
    later = time.time() + 10
    os.utime(checkout / "src" / "pkg" / "package.xml", (later, later))
    (finding,) = findings(doctor.check_workspace)
    assert (finding.level, finding.remedy) == (Level.WARN, "Run ./softform build.")
    shutil.rmtree(checkout / "install")
    assert findings(doctor.check_workspace)[0].level is Level.FAIL


def test_models(checkout):
    assert {finding.level for finding in findings(doctor.check_models)} == {Level.OK}
    weights = checkout / "models" / "membrane" / "forward_kinematics.pt"
    weights.write_bytes(weights.read_bytes()[:-1])
    (finding,) = [one for one in findings(doctor.check_models) if one.level is not Level.OK]
    assert finding.level is Level.FAIL and "not those that its card describes" in finding.message
    card = weights.with_suffix(".json")
    card.write_text(card.read_text().replace(json.loads(card.read_text())["weights_sha256"], "another"))
    (finding,) = [one for one in findings(doctor.check_models) if "membrane/rig_default" in one.message]
    assert finding.level is Level.FAIL and "another N_fk" in finding.message and "train s2r" in finding.remedy
    shutil.rmtree(checkout / "models")
    assert "there is no model" in findings(doctor.check_models)[0].message


def test_model_of_another_robot(checkout):
    description = checkout / "config" / "robots" / "membrane.yaml"
    text = description.read_text()
    assert "thickness: 0.002" in text
    description.write_text(text.replace("thickness: 0.002", "thickness: 0.003"))
    found = [one for one in findings(doctor.check_models) if "membrane" in one.message]
    assert found and all(one.level is Level.FAIL and "another description" in one.message for one in found)


def test_model_of_a_robot_given_by_path(checkout):
    (checkout / "config" / "robots" / "membrane.yaml").unlink()
    found = [one for one in findings(doctor.check_models) if "membrane" in one.message]
    assert found and all(one.level is Level.OK and "not checked" in one.message for one in found)
    weights = checkout / "models" / "membrane" / "forward_kinematics.pt"
    weights.write_bytes(weights.read_bytes()[:-1])
    (finding,) = [one for one in findings(doctor.check_models) if one.level is not Level.OK]
    assert finding.level is Level.FAIL and "not those that its card describes" in finding.message


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("ROS_DOMAIN_ID", "200", Level.FAIL),
        ("ROS_DOMAIN_ID", "x", Level.FAIL),
        ("ROS_DISTRO", "humble", Level.FAIL),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET", Level.WARN),
        ("FASTRTPS_DEFAULT_PROFILES_FILE", "missing/loopback.xml", Level.WARN),
    ],
)
def test_ros_environment(monkeypatch, name, value, level):
    assert [finding.level for finding in findings(doctor.check_ros_environment)] == [Level.OK]
    monkeypatch.setenv(name, value)
    (finding,) = findings(doctor.check_ros_environment)
    assert finding.level is level and finding.remedy


def test_data_of_another_schema(checkout):
    (checkout / "data" / "membrane" / "simulation.zarr").mkdir(parents=True)
    (finding,) = findings(doctor.check_data)
    assert finding.level is Level.WARN


def test_a_check_that_breaks_does_not_stop_the_others(monkeypatch):
    def check_broken():
        raise ZeroDivisionError
        yield

    monkeypatch.setattr(doctor, "CHECKS", (check_broken, doctor.check_python))
    broken, python = doctor.examine()
    assert broken.level is Level.FAIL and "ZeroDivisionError" in broken.message
    assert python.level is Level.OK


def test_broken_wheels_are_found(tmp_path, monkeypatch):
    if Path("/opt/ros/jazzy").is_dir():
        pytest.skip("ROS is installed: no wheels here")
    (tmp_path / "share").mkdir()
    (tmp_path / "share" / "a.cmake").write_text('set(x "/opt/python/cp311-cp311/include/python3.11")')
    monkeypatch.setattr(doctor.sys, "prefix", str(tmp_path))
    (finding,) = findings(doctor.check_wheel_repairs)
    assert finding.level is Level.FAIL


class PretendedGuardian:
    kind, process_id, complaint = "service", 0, ""

    def __init__(self, port, emergency):
        assert os.isatty(port)

    def end(self, emergency):
        assert not emergency


@pytest.mark.parametrize(
    ("kind", "process", "complaint", "contained", "board", "level", "says", "remedy"),
    [
        ("service", 1, "", False, True, Level.OK, "a service (OOM score", ""),
        ("service", 0, "", True, True, Level.OK, "a service (of the host)", ""),
        ("service", 1, "", True, True, Level.WARN, "`docker pause` freezes both", "dead-man"),
        ("child", 7, "", False, False, Level.OK, "There is no service. Each driver starts", "sudo ./softform install-"),
        (
            "child",
            7,
            "",
            False,
            True,
            Level.WARN,
            "There is no service. Each driver starts",
            "sudo ./softform install-",
        ),
        ("child", 7, "", True, True, Level.WARN, "when this container's PID 1 ends", "mount /run/softform"),
        (
            "child",
            7,
            "It is frozen.",
            False,
            False,
            Level.WARN,
            "It is frozen. Each driver",
            "sudo ./softform install-",
        ),
    ],
)
def test_what_guards_a_driver_and_what_ends_both(
    kind, process, complaint, contained, board, level, says, remedy, monkeypatch
):
    guardian = type("", (PretendedGuardian,), {"kind": kind, "process_id": process, "complaint": complaint})
    monkeypatch.setattr(doctor, "Guardian", guardian)
    monkeypatch.setattr(doctor, "is_container", lambda: contained)
    monkeypatch.setattr(doctor, "_serial_ports", lambda: ["/dev/ttyUSB0"] * board)
    (finding,) = findings(doctor.check_guardian)
    assert (finding.check, finding.level) == ("guardian", level)
    assert says in finding.message and remedy in finding.remedy and bool(finding.remedy) == bool(remedy)
    assert kind == "service" or "(OOM score" in finding.message  # what this machine grants
