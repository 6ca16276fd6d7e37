"""`softform install-service`: lets the system start the guardian before drivers, and spare it when memory runs out."""

import grp
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from string import Template

import click

import softform_actuation
import softform_core
from softform_core.cli.shared import robot_names
from softform_core.errors import SoftformError
from softform_core.paths import config_dir, home
from softform_core.robots import load_robot

GUARDIAN, DRIVER = "softform-guardian.service", "softform-driver.service"
_BOOTED_BY_SYSTEMD = Path("/run/systemd/system")
_SYSTEM_UNITS = Path("/etc/systemd/system")
_USER_UNITS = Path(".config/systemd/user")
_PASSED_ON = ("ROS_DOMAIN_ID", "SOFTFORM_CONFIG_PATH", "SOFTFORM_STATE")


@click.command("install-service")
@click.option("--user", is_flag=True, help="For this user's systemd, without root: it is protected less (see below).")
@click.option(
    "--robot",
    shell_complete=robot_names,
    help="Also write the driver's service, for this robot: a name in config/robots, or a .yaml.",
)
@click.option("--port", help="Port of its device, as /dev/serial/by-id/…; needed with --robot.")
@click.option("--remove", is_flag=True, help="Stop the services, the driver first, and delete their files.")
@click.option("--dry-run", is_flag=True, help="Print all of it, and do nothing.")
def install_service(user: bool, robot: str | None, port: str | None, remove: bool, dry_run: bool) -> None:
    """Install the guardian as a service, and the driver if you like; prints each file and each command.

    Without it a driver starts a guardian of its own, which shares its fate where a whole group of processes ends: when
    memory runs out, when a container ends, when `docker pause` freezes both. The service is in no such group. A driver
    finds it by itself; `./softform doctor` says whether it runs.

    \b
    Examples:
      sudo ./softform install-service
      sudo ./softform install-service --robot membrane --port /dev/ttyUSB0
      sudo systemctl start softform-driver   # once you have looked at the robot
      sudo ./softform install-service --remove

    The services run as the user who calls sudo. With --user nothing is spared when memory runs out beyond what the user
    may, and the guardian ends when the user logs out, unless `loginctl enable-linger` was called.
    """  # noqa: D301
    if bool(robot) != bool(port):
        raise SoftformError("--robot and --port belong together.", "Give both for the driver's service, or neither.")
    if robot:
        load_robot(robot)
        robot = str(Path(robot).resolve()) if Path(robot).is_file() else robot
    if not dry_run:
        _check_system(user)
    folder = Path.home() / _USER_UNITS if user else _SYSTEM_UNITS
    systemctl = ["systemctl", *(["--user"] if user else [])]
    if remove:
        _remove(folder, systemctl, dry_run)
        return
    units = {GUARDIAN: unit(GUARDIAN, user, None, None)}
    if robot and port:
        units[DRIVER] = unit(DRIVER, user, robot, port)
    changed = [_write(folder / name, text, dry_run) for name, text in units.items()]
    _run([*systemctl, "daemon-reload"], dry_run)
    _run([*systemctl, "enable", GUARDIAN], dry_run)
    # A driver that runs starts a guardian of its own meanwhile.
    _run([*systemctl, "restart" if changed[0] else "start", GUARDIAN], dry_run)
    if robot:
        click.echo(f"The driver is not started: look at the robot, then {shlex.join([*systemctl, 'start', DRIVER])}")


def unit(name: str, user: bool, robot: str | None, port: str | None) -> str:
    """Return the text of a unit, from its template in `config/services`.

    Args:
        name: `GUARDIAN` or `DRIVER`.
        user: Whether it is for a user's systemd instead of the machine's.
        robot: Robot of the driver.
        port: Port of the driver's device.

    Raises:
        SoftformError: If the command of the driver is missing: an installed workspace is no checkout.
    """
    start = home() / "softform"
    if name == DRIVER and not start.is_file():
        raise SoftformError(f"There is no {start}, by which the service starts the driver.", "Call this in a checkout.")
    files = (softform_actuation.__file__, softform_core.__file__)
    packages = [str(Path(file).resolve().parents[1]) for file in files if file]
    command = [str(start), "launch", "driver", f"robot:={robot}", f"port:={port}"]
    told = {variable: os.environ[variable] for variable in _PASSED_ON if variable in os.environ}
    return Template((config_dir() / "services" / name).read_text(encoding="utf-8")).substitute(
        home=home().as_uri().replace("%", "%%"),
        python=_quoted(sys.executable).replace("$", "$$"),
        packages=_quoted(os.pathsep.join(packages)),
        account="" if user else _account(),
        target="default.target" if user else "multi-user.target",
        robot=(robot or "").replace("%", "%%"),
        port=(port or "").replace("%", "%%"),
        command=" ".join(map(_quoted, command)).replace("$", "$$"),
        environment="\n".join(f"Environment={_quoted(f'{key}={value}')}" for key, value in told.items()),
    )


def _account() -> str:
    """Return the user who called sudo, with the group that may open serial ports: a container's user is in it, too."""
    name = os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    with suppress(KeyError):
        return f"User={name}\nGroup={grp.getgrnam('dialout').gr_name}"
    return f"User={name}"


def _quoted(word: str) -> str:
    """Return a word as systemd reads it back."""
    if any(ord(letter) < 32 for letter in word):
        raise SoftformError(f"{word!r} has a control character.", "Give a name without.")
    word = word.replace("%", "%%")
    return word if re.fullmatch(r"[\w%$./:=@,+-]+", word) else '"' + re.sub(r'([\\"])', r"\\\1", word) + '"'


def _check_system(user: bool) -> None:
    if not _BOOTED_BY_SYSTEMD.is_dir() or shutil.which("systemctl") is None:
        raise SoftformError(
            "This machine has no systemd; a service cannot be installed.",
            "In a container: install it on the host. See what it would do with --dry-run.",
        )
    if not user and os.geteuid() != 0:
        raise SoftformError(
            f"Only root may write to {_SYSTEM_UNITS}.", "Use sudo ./softform install-service, or --user."
        )


def _write(path: Path, text: str, dry_run: bool) -> bool:
    """Write a file that differs, and show it; return whether it differed."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        click.echo(f"unchanged: {path}")
        return False
    click.echo(f"{'would write' if dry_run else 'writes'} {path}:")
    click.echo("".join(f"    {line}\n" for line in text.splitlines()))
    if not dry_run:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return True


def _remove(folder: Path, systemctl: list[str], dry_run: bool) -> None:
    there = [name for name in (DRIVER, GUARDIAN) if (folder / name).is_file()]
    for name in there:
        _run([*systemctl, "disable", "--now", name], dry_run)
        click.echo(f"{'would delete' if dry_run else 'deletes'} {folder / name}")
        if not dry_run:
            (folder / name).unlink()
    if there:
        _run([*systemctl, "daemon-reload"], dry_run)
    else:
        click.echo(f"Nothing to remove: no service of Softform is in {folder}.")


def _run(command: list[str], dry_run: bool) -> None:
    click.echo(f"{'would run' if dry_run else 'runs'}: {shlex.join(command)}")
    if not dry_run and (done := subprocess.run(command)).returncode != 0:
        raise SoftformError(
            f"{shlex.join(command)} failed with exit code {done.returncode}.", f"See: journalctl -xeu {command[-1]}"
        )
