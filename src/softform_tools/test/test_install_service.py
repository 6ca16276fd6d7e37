"""What `./softform install-service` writes and runs, on machines with a systemd that only notes it."""

import configparser
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from softform_actuation.guardian import SOCKET_VARIABLE, service_sockets
from softform_core.errors import SoftformError
from softform_core.paths import home
from softform_tools import cli_install_service
from softform_tools.cli_install_service import DRIVER, GUARDIAN, install_service, unit

PORT = '/dev/serial/by-id/usb-1a86 "100%" $x'  # a link may be named anything


class Machine:
    def __init__(self, folder: Path) -> None:
        self.units = folder
        self.ran: list[list[str]] = []
        self.exit_code = 0

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        self.ran.append(command)
        return subprocess.CompletedProcess(command, self.exit_code)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "units")
    monkeypatch.setattr(cli_install_service, "_BOOTED_BY_SYSTEMD", tmp_path)
    monkeypatch.setattr(cli_install_service, "_SYSTEM_UNITS", made.units)
    monkeypatch.setattr(cli_install_service.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(cli_install_service.subprocess, "run", made.run)
    monkeypatch.setattr(cli_install_service.os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_USER", "lab")
    return made


def call(*words: str) -> Result:
    return CliRunner().invoke(install_service, words)


def read(text: str) -> configparser.ConfigParser:
    unit_file = configparser.ConfigParser(interpolation=None, delimiters="=", comment_prefixes="#", strict=False)
    unit_file.optionxform = str  # type: ignore[assignment, method-assign]
    unit_file.read_string(text)
    return unit_file


def test_the_guardian_is_written_shown_and_started(machine: Machine) -> None:
    result = call()
    assert result.exit_code == 0, result.output
    text = (machine.units / GUARDIAN).read_text()
    assert all(line in result.output for line in text.splitlines())
    assert machine.ran == [
        ["systemctl", "daemon-reload"],
        ["systemctl", "enable", GUARDIAN],
        ["systemctl", "restart", GUARDIAN],
    ]
    assert all(f"runs: {' '.join(command)}" in result.output for command in machine.ran)
    assert not (machine.units / DRIVER).exists()

    again = call()
    assert f"unchanged: {machine.units / GUARDIAN}" in again.output
    assert machine.ran[-1] == ["systemctl", "start", GUARDIAN]  # it runs: no driver has to do without it


def test_a_dry_run_shows_the_same_and_does_nothing_without_root_or_systemd(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cli_install_service, "_BOOTED_BY_SYSTEMD", tmp_path / "none")
    monkeypatch.setattr(cli_install_service.os, "geteuid", lambda: 1000)
    result = call("--dry-run", "--robot", "membrane", "--port", PORT)
    assert result.exit_code == 0, result.output
    assert result.output.count("would write") == 2 and "would run: systemctl daemon-reload" in result.output
    assert not machine.units.exists() and not machine.ran


@pytest.mark.parametrize("user", [False, True])
def test_the_guardian_outlives_the_driver_and_is_spared(user: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "lab")
    text = unit(GUARDIAN, user, None, None)
    guardian, service = read(text), read(text)["Service"]
    assert guardian["Unit"]["Before"] == DRIVER
    leads_to_the_driver = {"Requires", "BindsTo", "PartOf", "Wants", "Requisite", "After", "Upholds"}
    assert not leads_to_the_driver & set(guardian["Unit"])
    spared = {"OOMScoreAdjust": "-1000", "ManagedOOMPreference": "omit", "LimitMEMLOCK": "infinity"}
    watched = {"Type": "notify", "WatchdogSec": "5", "Restart": "always", "RuntimeDirectoryPreserve": "yes"}
    assert spared.items() | watched.items() <= dict(service).items()
    assert service["ExecStart"].endswith(" -m softform_actuation.guardian_service %t/softform/guardian.sock")
    assert guardian["Install"]["WantedBy"] == ("default.target" if user else "multi-user.target")
    assert service.get("User") == (None if user else "lab")
    assert "$" not in text


def test_the_driver_follows_the_guardian_and_is_never_started_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    text = unit(DRIVER, False, "membrane", PORT)
    driver = read(text)
    assert driver["Unit"]["After"] == driver["Unit"]["Wants"] == GUARDIAN
    assert not {"Requires", "BindsTo"} & set(driver["Unit"])  # a guardian that is restarted must not end it
    service = dict(driver["Service"])
    wanted = {"Type": "notify", "NotifyAccess": "all", "WatchdogSec": "5", "Restart": "no", "KillSignal": "SIGINT"}
    wanted |= {"OOMScoreAdjust": "-900", "LimitMEMLOCK": "infinity", "LimitRTPRIO": "80", "TimeoutStopSec": "30"}
    assert wanted.items() <= service.items()
    assert "Install" not in driver
    assert service["ExecStart"].endswith(
        r'/softform launch driver robot:=membrane "port:=/dev/serial/by-id/usb-1a86 \"100%%\" $$x"'
    )
    assert "Environment=ROS_DOMAIN_ID=7\n" in text


def test_the_driver_is_written_on_request_and_not_started(machine: Machine) -> None:
    result = call("--robot", "membrane", "--port", "/dev/ttyUSB0")
    assert result.exit_code == 0, result.output
    assert (machine.units / DRIVER).is_file()
    assert "not started: look at the robot, then systemctl start softform-driver.service" in result.output
    assert not [command for command in machine.ran if DRIVER in command]


def test_removing_stops_the_driver_first(machine: Machine) -> None:
    call("--robot", "membrane", "--port", "/dev/ttyUSB0")
    machine.ran.clear()
    assert call("--remove", "--dry-run").exit_code == 0 and not machine.ran
    result = call("--remove")
    assert result.exit_code == 0, result.output
    stopped = [["systemctl", "disable", "--now", name] for name in (DRIVER, GUARDIAN)]
    assert machine.ran == [*stopped, ["systemctl", "daemon-reload"]]
    assert not list(machine.units.iterdir())
    assert "Nothing to remove" in call("--remove").output


def test_a_users_service_needs_no_root(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli_install_service.os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert call("--user").exit_code == 0
    assert (tmp_path / ".config/systemd/user" / GUARDIAN).is_file()
    assert all(command[:2] == ["systemctl", "--user"] for command in machine.ran)


def no_systemd(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_install_service, "_BOOTED_BY_SYSTEMD", machine.units / "none")


def no_root(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_install_service.os, "geteuid", lambda: 1000)


def failing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.exit_code = 1


def nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    pass


@pytest.mark.parametrize(
    ("how", "words", "says"),
    [
        (no_systemd, [], "This machine has no systemd"),
        (no_root, [], "Only root may write to .* Use sudo"),
        (failing, [], "daemon-reload failed with exit code 1"),
        (nothing, ["--robot", "membrane"], "belong together"),
        (nothing, ["--robot", "no_such", "--port", "/dev/ttyUSB0"], "no_such"),
        (nothing, ["--robot", "membrane", "--port", "/dev/tty\nExecStop=reboot"], "control character"),
    ],
    ids=["no systemd", "no root", "failing", "half a driver", "no such robot", "a line break"],
)
def test_what_cannot_be_done_is_said(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[Machine, pytest.MonkeyPatch], None],
    words: list[str],
    says: str,
) -> None:
    how(machine, monkeypatch)
    result = call(*words)
    assert isinstance(result.exception, SoftformError) and re.search(says, str(result.exception))
    assert not (machine.units / DRIVER).exists()


@pytest.mark.parametrize("user", [False, True])
def test_systemd_finds_nothing_wrong_with_the_units(
    user: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("There is no systemd-analyze here (Debian's package systemd).")
    monkeypatch.setenv("SUDO_USER", "root")  # one that this machine has
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in (GUARDIAN, DRIVER):
        (tmp_path / name).write_text(unit(name, user, "membrane", PORT))
    names = [str(tmp_path / name) for name in (GUARDIAN, DRIVER)]
    done = subprocess.run(
        ["systemd-analyze", "verify", *(["--user"] if user else []), "--man=no", *names], capture_output=True, text=True
    )
    assert done.returncode == 0 and "softform" not in done.stderr, done.stderr


def test_the_drivers_container_is_given_the_folder_of_the_hosts_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SOCKET_VARIABLE, raising=False)
    driver = yaml.safe_load((home() / "docker" / "compose.yaml").read_text())["services"]["driver"]
    folder = str(Path(service_sockets()[0]).parent)
    assert f"{folder}:{folder}" in driver["volumes"]
    assert f"RuntimeDirectory={Path(folder).name}" in unit(GUARDIAN, False, None, None)
