"""The driver that a robot's description and a set of parameters ask for.

A package adds a family of devices by an entry point of the group `softform.devices`: `kind = module:FAMILY`, an object
that fills `DeviceFamily`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import chain
from typing import Any

from softform_actuation.ceilings import check_ceiling, check_range
from softform_actuation.commissioned import doubt_about
from softform_actuation.device import Device, DeviceFamily, ServedActuators, never
from softform_actuation.driver import Driver
from softform_actuation.latch import Latch
from softform_actuation.state_files import state_file, state_folders
from softform_actuation.states import DriverReport, DriverSettings, Readings
from softform_core.errors import SoftformError
from softform_core.plugins import load_plugin
from softform_core.robots import Robot
from softform_core.robots.devices import has_dead_man
from softform_ros.parameters import Parameter

GROUP = "softform.devices"


@cache
def device_family(kind: str) -> DeviceFamily:
    """The family of a kind.

    Raises:
        SoftformError: If there is no such kind, or its package cannot be loaded.
    """
    loaded, origin = load_plugin(GROUP, kind, "device")
    family: DeviceFamily = loaded
    if not all(hasattr(family, name) for name in ("parameters", "calibration_moves", "adapters", "check", "make")):
        raise SoftformError(f"The device '{kind}' of {origin} is no family.", "See docs/extending.md.")
    return family


PORTS = Parameter(
    "port", "/dev/softform", "of several devices: each is on the port `port`_DEVICE, unless `DEVICE.port` is set"
)


NO_DEAD_MAN = (
    "No hardware dead-man: if driver and guardian die together, the chambers keep their air. See docs/dead-man.md."
)


def parameters_of(robot: Robot) -> tuple[Parameter, ...]:
    """Parameters of the robot's devices: of one by their names, of several each as `DEVICE.NAME`, and `PORTS`.

    Raises:
        SoftformError: If a device is of an unknown kind.
    """
    if len(robot.devices) == 1:
        return device_family(robot.devices[0].kind).parameters
    rows = [
        replace(row, name=f"{device.name}.{row.name}", default="" if row.name == PORTS.name else row.default)
        for device in robot.devices
        for row in device_family(device.kind).parameters
    ]
    return (PORTS, *rows)


def make_driver(
    values: Mapping[str, Any],
    robot: Robot,
    on_report: Callable[[DriverReport], None],
    on_readings: Callable[[Readings], None],
    interrupted: Callable[[], bool] = never,
) -> Driver:
    """Return the driver of these parameters (`PARAMETERS` and `parameters_of`), not connected.

    A port may be opened here, to find out what is on it.

    Raises:
        SoftformError: If a device cannot be found out, or files that it needs cannot be read.
    """
    settings = DriverSettings(**{each.name: values[each.name] for each in fields(DriverSettings)})
    devices = make_devices(values, robot, interrupted)
    needs_dead_man = "pressure" in robot.actuator_quantities and not has_dead_man(robot.devices)
    doubt = doubt_about(robot, adapters_of(values, robot))
    warnings = tuple(filter(None, (NO_DEAD_MAN if needs_dead_man else "", doubt)))
    return Driver(devices, robot, settings, on_report, on_readings, latch_of(values, robot), warnings)


def make_devices(
    values: Mapping[str, Any], robot: Robot, interrupted: Callable[[], bool] = never
) -> list[tuple[Device, ServedActuators]]:
    """Return the devices of these parameters, as their families make them, each with what it serves.

    Raises:
        SoftformError: If two devices are on one port, a range is beyond the ceiling of its port or larger than it was
            there before, a device cannot be found out, or files that it needs cannot be read.
    """
    parts, names_of = served_by_devices(robot), _adapters(values, robot)
    names = list(chain(*names_of))
    if twice := [name for name in names if names.count(name) > 1]:
        raise SoftformError(f"Two devices are on {twice[-1]}.", "Set the parameter `DEVICE.port` of each.")
    for check in (check_ceiling, check_range):
        for part, names in zip(parts, names_of, strict=True):
            check(part, names)
    return [
        (device_family(device.kind).make(part, _own_values(values, robot, device.name), interrupted), part)
        for device, part in zip(robot.devices, parts, strict=True)
    ]


def ports_of(values: Mapping[str, Any], robot: Robot) -> list[str]:
    """Return the port of each device of these parameters."""
    return [str(_own_values(values, robot, device.name)[PORTS.name]) for device in robot.devices]


def adapters_of(values: Mapping[str, Any], robot: Robot) -> list[str]:
    """Return the adapter that each device of these parameters is known by."""
    return [names[-1] for names in _adapters(values, robot)]


def latch_of(values: Mapping[str, Any], robot: Robot) -> Latch:
    """Return the latch of the ports that these parameters name, and of the USB adapters behind them, wherever it lies.

    Raises:
        SoftformError: If a device is of an unknown kind, or there is no place for the latch.
    """
    names_of = _adapters(values, robot)
    files = [state_file(name, "latch") for name in chain(*names_of)]
    elsewhere = [folder / file.name for folder in state_folders()[1:] for file in files]
    return Latch(*files, elsewhere=elsewhere, adapters=[names[-1] for names in names_of])


def served_by_devices(robot: Robot) -> list[ServedActuators]:
    """What each device serves, in the order of the robot's description."""
    parts = []
    for device in robot.devices:
        indices = robot.served_by(device)
        parts.append(
            ServedActuators(
                robot.name,
                device.name,
                [robot.actuators[index] for index in indices],
                list(device.channels),
                [robot.actuator_quantities[index] for index in indices],
                robot.actuator_min[indices],
                robot.actuator_max[indices],
                robot.slew_rate[indices],
                robot.safe[indices],
                robot.actuator_tolerances.of(indices),
                device.settings,
                robot.actuator_quantities,
            )
        )
    return parts


def check_devices(robot: Robot) -> None:
    """Look whether each device is of a known family that can serve its actuators; nothing is opened.

    Raises:
        SoftformError: If not.
    """
    for device, part in zip(robot.devices, served_by_devices(robot), strict=True):
        device_family(device.kind).check(part)


def _adapters(values: Mapping[str, Any], robot: Robot) -> list[list[str]]:
    return [device_family(device.kind).adapters(_own_values(values, robot, device.name)) for device in robot.devices]


def _own_values(values: Mapping[str, Any], robot: Robot, device: str) -> dict[str, Any]:
    """Values of the parameters as one device's family names them."""
    if len(robot.devices) == 1:
        return dict(values)
    prefix = f"{device}."
    own = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
    return {**values, **own, PORTS.name: own.get(PORTS.name) or f"{values[PORTS.name]}_{device}"}
