"""The driver that a set of parameters describes, and the files that it keeps between its lives."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from softform_core.paths import runs_dir
from softform_core.plant import load_plant
from softform_core.robots import Robot
from softform_pneumatics.balance import Air
from softform_pneumatics.boards.detection import BoardSettings, make_board
from softform_pneumatics.boards.ports import names_of_port
from softform_pneumatics.driver import PneumaticsDriver
from softform_pneumatics.latch import Latch
from softform_pneumatics.offsets import OffsetStore
from softform_pneumatics.states import ChamberState, DriverSettings, State


def make_driver(
    values: Mapping[str, Any],
    robot: Robot,
    on_state: Callable[[State, str], None],
    on_pressures: Callable[[ChamberState], None],
) -> PneumaticsDriver:
    """Return the driver of these parameters (see `parameters.PARAMETERS`), not connected.

    With `board: auto` the port is opened here, to find out what is on it.

    Raises:
        SoftformError: If the board cannot be found out, or the identified plant cannot be read.
    """
    tolerances = robot.tolerances
    settings = DriverSettings(
        loop_rate=values["loop_rate"],
        realtime_priority=values["realtime_priority"],
        command_timeout=values["command_timeout"],
        stream_timeout=values["stream_timeout"],
        settle_tolerance=tolerances.settle,
        settle_time=values["settle_time"],
        overpressure_margin=tolerances.beyond_range,
        follow_tolerance=tolerances.follow,
        follow_timeout=values["follow_timeout"],
        response_timeout=values["response_timeout"],
        offset_limit=values["offset_limit"],
    )
    air = None if values["plant"] == "none" else Air(load_plant(), values["chamber_volume"])
    highest = float(robot.actuator_max.max()) + settings.overpressure_margin + settings.offset_limit
    board = make_board(
        values["board"], values["port"], BoardSettings(robot.channels, tolerances.vent_threshold, highest)
    )
    board_name = names_of_port(values["port"])[-1]
    offsets_file = _state_file(values, board_name, f"{robot.name}.offsets")
    offsets = OffsetStore(offsets_file, robot, board_name, settings.offset_limit)
    return PneumaticsDriver(board, robot, settings, on_state, on_pressures, latch_of(values), offsets, air)


def latch_of(values: Mapping[str, Any]) -> Latch:
    """Return the latch of the port that these parameters name, and of the adapter behind it whatever its name."""
    return Latch(*(_state_file(values, name, "latch") for name in names_of_port(values["port"])))


def _state_file(values: Mapping[str, Any], port_name: str, what: str) -> Path:
    folder = Path(values["state_folder"]) if values["state_folder"] else runs_dir() / "pneumatics"
    return folder / f"{re.sub(r'[^A-Za-z0-9]+', '_', port_name).strip('_')}.{what}.json"
