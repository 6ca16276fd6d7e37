"""A line of the log of the board's wire, which the virtual rig writes and tests of a whole stack read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WireEvent:
    """One thing that happened on the wire; in the log a line `SECONDS TAB SIDE TAB TEXT`.

    Attributes:
        time: s of `time.monotonic`, which all processes of a machine share.
        side: `host` for a request, `port` for what happened to the port, `true` for true values of the actuators.
        text: The request, what happened, or the values.
    """

    time: float
    side: str
    text: str

    @property
    def line(self) -> str:
        """The line in the log, its end included."""
        return f"{self.time:.6f}\t{self.side}\t{self.text}\n"

    @classmethod
    def from_line(cls, line: str) -> "WireEvent":
        """Return the event of a line, with or without its end."""
        time, side, text = line.split("\t", 2)
        return cls(float(time), side, text.strip())
