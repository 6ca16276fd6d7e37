"""Parameters that a pneumatic board needs."""

from softform_pneumatics.boards.detection import AUTO, BOARDS
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("port", "/dev/ttyUSB0", "port of the board; the virtual rig makes a link to its own"),
    Parameter("board", AUTO, "what is on the port (see docs/boards.md); `auto` finds out", choices=BOARDS),
    Parameter("plant", "auto", "`auto`: leaks and blockages by `config/plant.yaml` on an OpenPneu; `none`: not at all",
        choices=("auto", "none")),
    Parameter("chamber_volumes", [1.0],
        "volume of each chamber with its tube, in those of the identified plant (see `identify-plant`); one for all",
        0.05, 50.0),
    Parameter("response_timeout", 1.5, "time over which the balance of air is taken, s", 0.5, 10.0),
    Parameter("offset_limit", 500.0, "a sensor further off at rest than this is rejected, Pa", 0.0, 5000.0),
)  # fmt: skip
