"""Schedules: what people and planners do, and what goes wrong when; drawn from a seed, shrunk when one fails."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

COMMANDERS = ("planner", "collector")
PROCESSES = ("driver", *COMMANDERS)
MESSAGES = ("goal", "lease", "command", "state", "stop", "reset", "answer")
LAST_ACTION = 5.0
"""s after the start; a schedule is watched for some seconds longer."""

Kind = Literal[
    "goal", "stop", "reset", "let go", "deactivate", "activate", "restart",
    "freeze", "freeze at wait", "kill at wait", "drop", "delay", "duplicate", "sleep", "stick",
]  # fmt: skip


_DEEDS: tuple[Kind, ...] = (
    *("stop", "reset", "stop", "reset", "stop", "reset", "let go", "deactivate", "activate", "restart"),
)
_FAULTS: tuple[Kind, ...] = (
    *("freeze", "freeze at wait", "freeze at wait", "kill at wait", "drop", "delay", "delay", "duplicate", "sleep"),
    "stick",
)


@dataclass(frozen=True)
class Item:
    """One thing that happens.

    Attributes:
        kind: What.
        moment: When, s after the start; of faults at a wait or of a message, 0.
        who: Process or kind of message that it concerns.
        number: Which wait of the process, or message of that kind, counted from the start.
        seconds: How long it lasts, or how long a goal is planned.
    """

    kind: Kind
    moment: float = 0.0
    who: str = ""
    number: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return it as a line of a report."""
        parts = [f"{self.moment:5.2f} s" if not self.number else f"no. {self.number:3d}", self.kind, self.who]
        return " ".join(part for part in parts if part) + (f" for {self.seconds:.2f} s" if self.seconds else "")


@dataclass(frozen=True)
class Schedule:
    """A whole run: the same schedule always runs the same way.

    Attributes:
        seed: Of the delays of messages that nothing goes wrong with.
        items: What happens.
    """

    seed: int
    items: tuple[Item, ...]


def draw(seed: int) -> Schedule:
    """Return the schedule of a seed: one to four goals, what an operator does, and up to three faults.

    All come close together around one moment: what lies far apart does not meet.
    """
    draws = random.Random(seed)
    around = draws.uniform(1.0, LAST_ACTION - 1.0)

    def moment() -> float:
        return min(max(draws.gauss(around, 1.0), 0.3), LAST_ACTION)

    items = [
        Item("goal", moment(), draws.choice(COMMANDERS), 0, draws.uniform(0.0, 1.5)) for _ in range(draws.randint(1, 4))
    ]
    for _ in range(draws.randint(0, 5)):
        deed = draws.choice(_DEEDS)
        items.append(Item(deed, moment(), draws.choice(COMMANDERS) if deed == "let go" else ""))
    items += [_fault(draws, moment()) for _ in range(draws.choice((0, 1, 1, 1, 2, 2, 3)))]
    return Schedule(seed, tuple(sorted(items, key=lambda item: item.moment)))


def _fault(draws: random.Random, moment: float) -> Item:
    seconds = draws.choice((0.3, 1.0, 1.8, 2.5, 4.0))
    kind = draws.choice(_FAULTS)
    match kind:
        case "freeze":
            return Item(kind, moment, draws.choice(PROCESSES), 0, seconds)
        case "freeze at wait" | "kill at wait":
            return Item(kind, 0.0, draws.choice(PROCESSES), draws.randint(1, 130), seconds)
        case "drop" | "delay" | "duplicate":
            who = draws.choice(MESSAGES)
            return Item(kind, 0.0, who, draws.randint(1, 40 if who in ("command", "state") else 5), seconds)
        case _:
            return Item(kind, moment, "", 0, seconds)


def shrunk(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """Return a schedule that fails still, and does not without any of its items."""
    smaller = True
    while smaller:
        smaller = False
        for item in schedule.items:
            without = replace(schedule, items=tuple(other for other in schedule.items if other is not item))
            if fails(without):
                schedule, smaller = without, True
                break
    return schedule
