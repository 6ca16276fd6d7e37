"""Outcome of one injected fault, and the figures of many."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from softform_core.errors import SoftformError

_MS_PER_S = 1000.0


@dataclass(frozen=True)
class Outcome:
    """Outcome of one injection.

    Attributes:
        fault_class: Such as `serial`.
        variant: Fault of the class.
        safe: Whether the stack came to the state that is right for this fault, and stayed there.
        found: Observation, in a sentence.
        vent_ms: Time from the first observable moment of the fault to the vent request on the board's wire, ms; None
            where no vent is due, or nothing is left to vent.
        hung: Whether something did not end, answer or come back in time.
        lost_frames: Frames that were stored before the fault and cannot be read after it.
        seconds: Duration of the injection and the recovery, s.
        load: Processes that wanted a core of the machine, over its cores: beyond 1, the stack was starved of time.
        slack_ms: From the request to slacken on the wire of tendon motors until the tendons truly were slack.
        still_ms: From the first observable moment until all joints of arms truly stood still, ms.
        falls_ms: From the first observable moment until the air truly left the chambers, ms.
        empty_ms: The same until all chambers truly were at rest, ms.
        at_rest: Whether all actuators truly were at rest in the end; None where they need not be, or nothing is left to
            look at.
        false_reports: How often the driver said that all is safe while an actuator truly was not at rest.
    """

    fault_class: str
    variant: str
    safe: bool
    found: str
    vent_ms: float | None = None
    hung: bool = False
    lost_frames: int = 0
    seconds: float = 0.0
    load: float = 0.0
    slack_ms: float | None = None
    falls_ms: float | None = None
    empty_ms: float | None = None
    at_rest: bool | None = None
    false_reports: int = 0
    still_ms: float | None = None


def judged(
    wrong: str | None,
    found: str = "",
    vent_ms: float | None = None,
    *,
    hung: bool = False,
    lost_frames: int = 0,
    slack_ms: float | None = None,
    at_rest: bool | None = None,
    still_ms: float | None = None,
) -> Outcome:
    """Safe with what was found, unless something is wrong; class, variant, seconds and load are the campaign's."""
    return Outcome(
        "", "", wrong is None, wrong or found, vent_ms, hung, lost_frames,
        slack_ms=slack_ms, at_rest=at_rest, still_ms=still_ms,
    )  # fmt: skip


def untimed(outcome: Outcome) -> Outcome:
    """The same without times: the moment from which the fault could be observed is not known well enough."""
    return replace(outcome, vent_ms=None, falls_ms=None, empty_ms=None)


def milliseconds(later: float, earlier: float) -> float:
    """Between two moments, s."""
    return round((later - earlier) * _MS_PER_S, 1)


def figures(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Totals, a table of the classes, and every outcome that was not safe."""
    classes = sorted({outcome.fault_class for outcome in outcomes})
    return {
        **_totals(outcomes),
        "load_per_core": round(float(np.mean([outcome.load for outcome in outcomes])), 2) if outcomes else None,
        "classes": {name: _totals([one for one in outcomes if one.fault_class == name]) for name in classes},
        "unsafe": [asdict(one) for one in outcomes if not one.safe or one.hung or one.lost_frames or one.false_reports],
    }


def _totals(outcomes: Iterable[Outcome]) -> dict[str, object]:
    outcomes = list(outcomes)

    def times(field: str) -> list[float]:
        return [value for one in outcomes if (value := getattr(one, field)) is not None]

    def late(field: str) -> float | None:
        return round(float(np.percentile(times(field), 99)), 1) if times(field) else None

    return {
        "injected": len(outcomes),
        "safe": sum(one.safe for one in outcomes),
        "safe_measured": sum(one.at_rest is True for one in outcomes),
        "reported_safe_but_not": sum(one.false_reports for one in outcomes),
        "vents": len(times("vent_ms")),
        "vented_within_ms_p99": late("vent_ms"),
        "chamber_falls_within_ms_p99": late("falls_ms"),
        "chamber_vented_within_ms_p99": late("empty_ms"),
        "vented_within_ms_max": max(times("vent_ms"), default=None),
        "slack_within_ms_max": max(times("slack_ms"), default=None),
        "still_within_ms_max": max(times("still_ms"), default=None),
        "data_lost_frames": sum(one.lost_frames for one in outcomes),
        "hung": sum(one.hung for one in outcomes),
        "seconds": round(sum(one.seconds for one in outcomes), 1),
    }


def table(figures_of_all: dict[str, object]) -> str:
    """The classes as lines of text."""
    columns = (
        "injected", "safe", "safe_measured", "reported_safe_but_not", "hung", "data_lost_frames", "vents",
        "vented_within_ms_p99", "chamber_falls_within_ms_p99", "chamber_vented_within_ms_p99", "slack_within_ms_max",
        "still_within_ms_max", "seconds",
    )  # fmt: skip
    rows = figures_of_all["classes"]
    assert isinstance(rows, dict)
    lines = [f"{'class':<14}" + "".join(f"  {name}" for name in columns)]
    for name, row in [*rows.items(), ("all", figures_of_all)]:
        cells = ("-" if row[column] is None else str(row[column]) for column in columns)
        lines.append(f"{name:<14}" + "".join(f"  {cell:>{len(of)}}" for cell, of in zip(cells, columns, strict=True)))
    return "\n".join(lines)


class Ledger:
    """Outcomes by the number of their injection in the script, in a file that is begun if it is missing.

    Args:
        path: Of the file.
        revision: Of the code: another one's faults were injected into another stack, and by another script.

    Raises:
        SoftformError: If it cannot be read, or was begun by another revision.
    """

    def __init__(self, path: Path, revision: str) -> None:
        """Read what is there; a last line that was cut off is dropped."""
        self.path, self._revision = path, revision
        self.outcomes: dict[int, Outcome] = {}
        if path.exists():
            *whole, _ = path.read_text(encoding="utf-8").split("\n")
            for line in whole:
                self._take(line)
            path.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")

    def _take(self, line: str) -> None:
        try:
            kept = json.loads(line)
            number, revision = int(kept.pop("number")), kept.pop("revision")
            self.outcomes[number] = Outcome(**kept)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SoftformError(
                f"{self.path} holds a line that is no outcome: {line[:80]!r}.",
                "Remove that line, or begin a new run without --resume.",
            ) from error
        if revision != self._revision:
            raise SoftformError(
                f"{self.path} holds faults that revision {revision} was given; this is {self._revision}.",
                "Begin a new run without --resume.",
            )

    def keep(self, number: int, outcome: Outcome) -> None:
        """Add one, on disk at once.

        Raises:
            SoftformError: If it cannot be written.
        """
        self.outcomes[number] = outcome
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"number": number, "revision": self._revision, **asdict(outcome)}) + "\n")
        except OSError as error:
            raise SoftformError(f"{self.path} cannot be written: {error.strerror}.", "Free space there.") from error
