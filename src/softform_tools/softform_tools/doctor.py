"""`softform doctor`: looks for what is missing or wrong on this machine, and says how to correct it."""

import enum
import grp
import hashlib
import importlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from glob import glob
from importlib.metadata import distributions
from pathlib import Path

import click

from softform_actuation.guardian import Guardian, protection_of
from softform_core.errors import SoftformError
from softform_core.paths import data_dir, described_names, home, models_of, places
from softform_core.robots import load_robot
from softform_core.text import LONGEST_MESSAGE, printable

PYTHON_VERSIONS = ((3, 11), (3, 12), (3, 13))
ROS_PREFIX = Path("/opt/ros/jazzy")
OPEN3D_APT = "sudo apt-get install libegl1 libgl1 libidn2-0 libudev1 libusb-1.0-0 libx11-6"
DISK_NEEDED, DISK_WANTED = 500_000_000, 5_000_000_000  # bytes
ALL_ANSWER = "all motors answer"  # as the driver's health says of their bus
LOOPBACK_PROFILE = "loopback.xml"  # in config/middleware; ./softform has Fast DDS read it
HIGHEST_DOMAIN = 101  # above it, ports collide with Linux' ephemeral ones
BUILD_INPUTS = ("package.xml", "setup.py", "setup.cfg", "CMakeLists.txt", "*/*.msg", "*/*.srv", "*/*.action")


class Level(enum.StrEnum):
    """Severity of a finding."""

    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """Result of one check; `remedy` says what to do about it."""

    check: str
    level: Level
    message: str
    remedy: str = ""


def check_python() -> Iterator[Finding]:
    """Check the interpreter's version."""
    found = f"Python {sys.version.split()[0]} in {sys.prefix}"
    known = sys.version_info[:2] in PYTHON_VERSIONS
    yield Finding("python", Level.OK if known else Level.FAIL, found, "" if known else "Install Python 3.11 to 3.13.")


def check_packages() -> Iterator[Finding]:
    """Check installed packages against the pinned ones."""
    pins = _base_pins()
    if not pins:
        yield Finding("packages", Level.WARN, "no lock file: this is not a checkout", "Nothing, if it was built so.")
    elif wrong := _differing(pins, _installed()):
        listed = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        remedy = f"rm {home() / '.venv/softform_prepared/packages'}, then run any ./softform command: it installs them."
        yield Finding("packages", Level.FAIL, f"{len(wrong)} of {len(pins)} differ: {listed}", remedy)
    else:
        yield Finding("packages", Level.OK, f"all {len(pins)} as pinned")


def check_extras() -> Iterator[Finding]:
    """Check packages that only some commands need; each file's head tells which, and how they are installed."""
    base, absent, present = _base_pins(), [], []
    for file in sorted(home().glob("requirements-*.txt")):
        extra, install = file.stem.removeprefix("requirements-"), _INSTALL.search(file.read_text(encoding="utf-8"))
        if install is None:
            continue
        pins = {name: pinned for name, pinned in _pins(file).items() if name not in base}
        target = re.search(r"--target (\S+)", install[1])
        installed = _installed(target and home() / target[1])
        if not pins.keys() & installed.keys():
            absent.append(extra)
            continue
        present.append(extra)
        if wrong := _differing(pins, installed):
            yield Finding("extras", Level.WARN, f"of {extra} differ: {', '.join(wrong)}", f"Run: {install[1]}")
    told = "; ".join([*(f"{extra} is installed" for extra in present), *(f"{extra} is not" for extra in absent)])
    remedy = "None is needed; requirements-NAME.txt says what for, and how it is installed." if absent else ""
    yield Finding("extras", Level.OK, told or "none are known", remedy)


_INSTALL = re.compile(r"^# Install: (.+)$", re.MULTILINE)
_PIN = re.compile(r"^([\w.-]+)==([^\s;]+)(?![^\n]*;)", re.MULTILINE)  # not those of some systems only


def _base_pins() -> dict[str, str]:
    """Return versions of what ./softform installs by itself, by name."""
    names = ("requirements", "requirements-no-deps", *(() if ROS_PREFIX.is_dir() else ("requirements-ros",)))
    files = [home() / f"{name}.txt" for name in names]
    return {name: pinned for file in files if file.is_file() for name, pinned in _pins(file).items()}


def _pins(file: Path) -> dict[str, str]:
    return {_normalised(name): pinned for name, pinned in _PIN.findall(file.read_text(encoding="utf-8"))}


def _installed(folder: Path | None = None) -> dict[str, str]:
    """Return versions of the packages in a folder, or else of this Python's, by name."""
    found = list(distributions() if folder is None else distributions(path=[str(folder)]))
    return {_normalised(one.metadata["Name"]): one.version for one in reversed(found)}  # the first is what is imported


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _differing(pins: dict[str, str], installed: dict[str, str]) -> list[str]:
    rows = ((name, installed.get(name, "missing"), pinned) for name, pinned in pins.items())
    return [
        f"{name} {has} (pinned {pinned})" for name, has, pinned in rows if has.split("+")[0] != pinned.split("+")[0]
    ]


def check_open3d() -> Iterator[Finding]:
    """Check Open3D with the libraries of the system that it is linked against."""
    try:
        importlib.import_module("open3d")
        yield Finding("Open3D", Level.OK, "it can be imported")
    except ImportError as error:
        yield Finding("Open3D", Level.FAIL, f"it cannot be imported: {error}", f"On Debian or Ubuntu: {OPEN3D_APT}")


def check_wheel_repairs() -> Iterator[Finding]:
    """Check the two paths that the ROS wheels carry from where they were made."""
    if ROS_PREFIX.is_dir():
        yield Finding("wheel repairs", Level.OK, f"not needed: ROS is in {ROS_PREFIX}")
        return
    broken = [p for p in Path(sys.prefix, "share").rglob("*.cmake") if b"/opt/python/cp3" in p.read_bytes()]
    if broken:
        remedy = "Remove .venv/softform_prepared/repairs, then run any ./softform command."
        yield Finding("wheel repairs", Level.FAIL, f"{len(broken)} files name another interpreter: {broken[0]}", remedy)
    else:
        yield Finding("wheel repairs", Level.OK, f"the wheels name {sysconfig.get_path('include')}")


def check_workspace() -> Iterator[Finding]:
    """Check the install space of colcon, and whether it is newer than what it was built from."""
    sources = [package.parent for package in sorted((home() / "src").glob("*/package.xml"))]
    if not sources:
        yield Finding("workspace", Level.OK, f"installed in {home()}")
        return
    missing, old = [], []
    for source in sources:
        built = home() / "build" / source.name / "colcon_build.rc"
        if not (home() / "install" / source.name).is_dir() or not built.is_file():
            missing.append(source.name)
        elif max(p.stat().st_mtime for name in BUILD_INPUTS for p in source.glob(name)) > built.stat().st_mtime:
            old.append(source.name)
    if missing:
        yield Finding("workspace", Level.FAIL, f"not built: {', '.join(missing)}", "Run ./softform build.")
    elif old:
        yield Finding("workspace", Level.WARN, f"changed since the build: {', '.join(old)}", "Run ./softform build.")
    else:
        yield Finding("workspace", Level.OK, f"{len(sources)} packages built")


def check_messages() -> Iterator[Finding]:
    """Check whether the stack's own messages can be used."""
    try:
        found = importlib.import_module("softform_interfaces.msg")
        found.ActuatorState(value=[0.0])
        yield Finding("messages", Level.OK, "softform_interfaces can be imported")
    except (ImportError, AttributeError) as error:
        remedy = "Run ./softform build; start commands with ./softform, which sets the environment."
        yield Finding("messages", Level.FAIL, f"softform_interfaces cannot be imported: {error}", remedy)


def check_ros_environment() -> Iterator[Finding]:
    """Check the environment variables that change what ROS does."""
    wrong = []
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    if not domain.isdigit() or int(domain) > HIGHEST_DOMAIN:
        wrong.append((Level.FAIL, f"ROS_DOMAIN_ID is '{domain}'", f"Set it to 0 … {HIGHEST_DOMAIN}, or unset it."))
    if os.environ.get("ROS_DISTRO", "jazzy") != "jazzy":
        sourced = os.environ["ROS_DISTRO"]
        wrong.append((Level.FAIL, f"ROS '{sourced}' is sourced", "Use a new terminal without it."))
    reach = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    profile = Path(os.environ.get("FASTRTPS_DEFAULT_PROFILES_FILE", ""))
    if reach == "SYSTEM_DEFAULT" and profile.name == LOOPBACK_PROFILE and profile.is_file():
        reach = "LOCALHOST"
    if reach not in ("LOCALHOST", "OFF"):
        seen = "robots and people on the network see this stack and can command it"
        wrong.append((Level.WARN, seen, "Set ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST if that is not wanted."))
    if os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp") != "rmw_fastrtps_cpp" and not ROS_PREFIX.is_dir():
        wanted = os.environ["RMW_IMPLEMENTATION"]
        wrong.append((Level.FAIL, f"RMW_IMPLEMENTATION is {wanted}, which is not here", "Unset it."))
    for level, message, remedy in wrong:
        yield Finding("ROS environment", level, message, remedy)
    if not wrong:
        yield Finding("ROS environment", Level.OK, f"domain {domain}, discovery {reach}")


def check_dds() -> Iterator[Finding]:
    """Check a message to another process and back."""
    try:
        # Imported here: without ROS, the other checks must still run.
        from softform_tools.ros_checks import PATIENCE, round_trip

        took = round_trip()
    except (ImportError, RuntimeError) as error:
        yield Finding("DDS", Level.FAIL, f"ROS cannot be started: {error}", "See the lines above.")
        return
    if took is None:
        remedy = "Let the firewall pass UDP on the loopback device."
        yield Finding("DDS", Level.FAIL, f"two processes did not find each other in {PATIENCE:.0f} s", remedy)
    else:
        yield Finding("DDS", Level.OK, f"a message to another process and back takes {1e3 * took:.1f} ms")


def check_disk() -> Iterator[Finding]:
    """Check the room for data and recordings."""
    free = shutil.disk_usage(home()).free
    level = Level.FAIL if free < DISK_NEEDED else Level.WARN if free < DISK_WANTED else Level.OK
    remedy = "" if level is Level.OK else "Free some: runs/ holds recordings and reports, data/ holds simulations."
    yield Finding("disk", level, f"{_size(free)} free at {home()}", remedy)


def check_models() -> Iterator[Finding]:
    """Check trained models: their cards, that the weights are the card's, and that the robot is."""
    cards = [(place, card) for place in places() for card in sorted((place / "models").glob("**/*.json"))]
    if not cards:
        remedy = "Train one: ./softform train fk --robot membrane"
        yield Finding("models", Level.FAIL, f"there is no model in {home() / 'models'}", remedy)
    for place, card_file in cards:
        name = card_file.relative_to(place / "models").with_suffix("")
        command = "s2r" if card_file.stem == "sim_to_real" else "fk"
        remedy = f"Train it again (./softform train {command} --robot {name.parts[0]}), or: git checkout -- models"
        try:
            card = json.loads(card_file.read_text())
            weights = card_file.with_suffix(".pt").read_bytes()
            if hashlib.sha256(weights).hexdigest() != card["weights_sha256"]:
                raise ValueError("the weights are not those that its card describes")
            described = card["robot"] in described_names("robots")
            if described and load_robot(card["robot"]).fingerprint() != card["robot_fingerprint"]:
                raise ValueError(f"it was trained for another description of '{card['robot']}'")
            if command == "s2r":
                simulated = models_of(card["robot"]) / "forward_kinematics.json"
                if card["forward_kinematics"]["weights_sha256"] != json.loads(simulated.read_text())["weights_sha256"]:
                    raise ValueError("it was trained with another N_fk than the one in models")
            fits = "and robot" if described else "(its robot is not checked: no description of it is in config/robots)"
            yield Finding("models", Level.OK, f"{name} fits its card {fits}")
        except (OSError, ValueError, KeyError, SoftformError) as error:
            yield Finding("models", Level.FAIL, f"{name}: {error}", remedy)


def check_serial() -> Iterator[Finding]:
    """Check the permission to open the board's serial port."""
    ports = _serial_ports()
    closed = [port for port in ports if not os.access(port, os.R_OK | os.W_OK)]
    user, in_group = pwd.getpwuid(os.getuid()).pw_name, os.getuid() == 0
    remedy = f"sudo usermod -aG dialout {user}, then log in again."
    with suppress(KeyError):
        in_group = in_group or grp.getgrnam("dialout").gr_gid in os.getgroups()
    if closed:
        yield Finding("serial port", Level.FAIL, f"no permission to open {', '.join(closed)}", remedy)
    elif ports:
        yield Finding("serial port", Level.OK, f"{', '.join(ports)} can be opened")
    elif in_group:
        yield Finding("serial port", Level.OK, "no board is connected (the virtual rig needs none)")
    else:
        found = f"no board is connected, and {user} may not open one (the virtual rig needs none)"
        yield Finding("serial port", Level.WARN, found, remedy)


def check_guardian() -> Iterator[Finding]:
    """Check what makes the robot safe when a driver dies, and what ends it together with the driver."""
    device, port = os.openpty()
    try:
        guardian = Guardian(port, b"\0")
        kind, process, complaint = guardian.kind, guardian.process_id, guardian.complaint
        spared = protection_of(process)
        guardian.end(emergency=False)
    finally:
        os.close(device)
        os.close(port)
    found, remedy = f"a service ({spared if process else 'of the host'})", ""
    if kind == "child":
        asked = [sys.executable, "-c", _PROTECTED]
        spared = subprocess.run(asked, capture_output=True, text=True, timeout=60).stdout.strip()
        found = f"{complaint or 'There is no service.'} Each driver starts a process of its own ({spared})"
        remedy = "sudo ./softform install-service (docs/steps/install-service.md)."
    if process and is_container():
        found += "; it ends with the driver when this container's PID 1 ends, and `docker pause` freezes both"
        remedy = "Install the service on the host and mount /run/softform (docker/README.md), or see docs/dead-man.md."
    level = Level.WARN if complaint or (remedy and _serial_ports()) else Level.OK
    yield Finding("guardian", level, found, remedy)


_PROTECTED = "import os; from softform_actuation.guardian import *; protect(); print(protection_of(os.getpid()))"


def is_container() -> bool:
    """Return whether this process is in a container, whose processes all end with its first one."""
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return True
    return any(name in Path("/proc/1/cgroup").read_text() for name in ("docker", "kubepods", "containerd", "lxc"))


def _serial_ports() -> list[str]:
    return [*glob("/dev/ttyUSB*"), *glob("/dev/ttyACM*")]


def check_drivers() -> Iterator[Finding]:
    """Check drivers that run here: who holds their leases, their motors, and the bus of these."""
    try:
        # Imported here: without ROS, the other checks must still run.
        from softform_tools.ros_checks import drivers_heard

        drivers = drivers_heard()
    except (ImportError, RuntimeError) as error:
        yield Finding("driver", Level.FAIL, f"ROS cannot be started: {error}", "See the lines above.")
        return
    if not drivers:
        yield Finding("driver", Level.OK, "none runs (./softform launch starts one)")
    for driver, heard in drivers.items():
        if heard.status is not None:
            fault, unsafe = heard.status.state == "fault", heard.status.unsafe
            state = f"{driver} is {heard.status.state}: {heard.status.reason}; lease: {heard.status.lease}"
            level = Level.FAIL if unsafe else Level.WARN if fault else Level.OK
            remedy = f"Cut its supply: {unsafe}." if unsafe else "Remove the cause, then reset." * fault
            yield Finding("driver", level, state, remedy)
        for name, state in heard.motors.items():
            is_bus = name.startswith("bus")
            broken = "does not answer" in state or (is_bus and state != ALL_ANSWER)
            remedy = state if is_bus else "See the line of the bus."
            yield Finding("motors", Level.FAIL if broken else Level.OK, f"{driver}: {name}: {state}", remedy * broken)


def check_data() -> Iterator[Finding]:
    """Check stores of simulated shapes."""
    stores = sorted(data_dir().glob("*/simulation.zarr"))
    if not stores:
        yield Finding("data", Level.OK, "no simulations yet (./softform simulate makes them)")
    for store in stores:
        from softform_core.simulation.store import open_simulation

        try:
            open_simulation(store)
            yield Finding("data", Level.OK, f"{store} can be read")
        except SoftformError as error:
            yield Finding("data", Level.WARN, error.message, error.next_step)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_python,
    check_packages,
    check_extras,
    check_open3d,
    check_wheel_repairs,
    check_workspace,
    check_messages,
    check_ros_environment,
    check_dds,
    check_disk,
    check_models,
    check_serial,
    check_guardian,
    check_drivers,
    check_data,
)


def examine() -> Iterator[Finding]:
    """Yield the findings of every check; one that fails unexpectedly is a finding, too."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:  # the doctor must get to the end
            name = check.__name__.removeprefix("check_").replace("_", " ")
            yield Finding(name, Level.FAIL, f"the check itself failed: {error!r}", "Please report this.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
def doctor(as_json: bool) -> None:
    """Say what is missing or wrong on this machine, and what to do. Exits with 1 if something must be corrected."""
    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            colour = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}[finding.level]
            told = printable(f"{finding.check}: {finding.message}", LONGEST_MESSAGE, lines=True)
            click.echo(f"{click.style(f'{finding.level:4}', fg=colour)}  {told}")
            if finding.remedy:
                click.echo(f"      -> {printable(finding.remedy, LONGEST_MESSAGE, lines=True)}")
    failed = any(finding.level is Level.FAIL for finding in findings)
    if as_json:
        click.echo(json.dumps({"healthy": not failed, "findings": [asdict(finding) for finding in findings]}, indent=2))
    sys.exit(1 if failed else 0)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
