"""The driver that a robot's description and a set of parameters ask for."""

from collections.abc import Callable, Mapping
from typing import Any

from softform_actuation.device import Device, ServedActuators, never
from softform_actuation.driver import Driver
from softform_actuation.families import device_family
from softform_actuation.latch import Latch
from softform_actuation.parameters import PARAMETERS
from softform_actuation.state_files import state_file
from softform_actuation.states import DriverReport, DriverSettings, Readings
from softform_core.robots import Robot
from softform_ros.parameters import Parameter


def parameters_of(robot: Robot) -> tuple[Parameter, ...]:
    """Parameters of the robot's devices: of one by their names, of several each as `DEVICE.NAME`.

    Raises:
        SoftformError: If a device is of an unknown kind.
    """
    rows: list[Parameter] = []
    for device in robot.devices:
        for row in device_family(device.kind).parameters:
            name = row.name if len(robot.devices) == 1 else f"{device.name}.{row.name}"
            rows.append(
                Parameter(name, row.default, row.description, row.minimum, row.maximum, row.choices, row.read_only)
            )
    return tuple(rows)


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
    settings = DriverSettings(**{row.name: values[row.name] for row in PARAMETERS if row.name != "robot"})
    devices = make_devices(values, robot, interrupted)
    return Driver(devices, robot, settings, on_report, on_readings, latch_of(values, robot))


def make_devices(
    values: Mapping[str, Any], robot: Robot, interrupted: Callable[[], bool] = never
) -> list[tuple[Device, ServedActuators]]:
    """Return the devices of these parameters, as their families make them, each with what it serves.

    Raises:
        SoftformError: If a device cannot be found out, or files that it needs cannot be read.
    """
    return [
        (device_family(device.kind).make(part, _own_values(values, robot, device.name), interrupted), part)
        for device, part in zip(robot.devices, served_by_devices(robot), strict=True)
    ]


def latch_of(values: Mapping[str, Any], robot: Robot) -> Latch:
    """Return the latch of the ports that these parameters name, and of the adapters behind them whatever their names.

    Raises:
        SoftformError: If a device is of an unknown kind, or there is no place for the latch.
    """
    names = [
        name
        for device in robot.devices
        for name in device_family(device.kind).adapters(_own_values(values, robot, device.name))
    ]
    return Latch(*(state_file(name, "latch") for name in names))


def served_by_devices(robot: Robot) -> list[ServedActuators]:
    """What each device serves, in the order of the robot's description."""
    parts = []
    for device in robot.devices:
        names = device.actuators or robot.actuators
        indices = [robot.actuators.index(name) for name in names]
        parts.append(
            ServedActuators(
                robot.name,
                device.name,
                list(names),
                list(device.channels),
                robot.unit,
                robot.actuator_min[indices],
                robot.actuator_max[indices],
                robot.slew_rate[indices],
                robot.safe[indices],
                robot.tolerances,
                device.settings,
            )
        )
    return parts


def _own_values(values: Mapping[str, Any], robot: Robot, device: str) -> dict[str, Any]:
    own = f"{device}."
    if len(robot.devices) == 1:
        return dict(values)
    return {**values, **{name.removeprefix(own): value for name, value in values.items() if name.startswith(own)}}
