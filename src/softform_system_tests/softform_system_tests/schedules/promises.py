"""What is promised whatever happens, and a look at whether it is kept, by the true pressures and the true times."""

from collections import defaultdict

from softform_actuation.guardian import SILENCE_SECONDS
from softform_actuation.states import DriverReport, State
from softform_ros.asked import ASKED_SECONDS
from softform_ros.standstill import STANDSTILL_SECONDS
from softform_system_tests.schedules.simulated_board import Chambers
from softform_system_tests.schedules.virtual_time import World

REST = 1000.0
"""Pa; a chamber below it is at rest."""

HOLD_SECONDS = 2.5
"""For which the same values may be held."""

_BASE, _STEP = 2000.0, 10.0
_SLACK_SECONDS = 0.2
_STOPPED_SECONDS = 0.5
_RELEASE_SECONDS = 1.5  # a release that is lost: the driver waits for commands for a second
_NOTICED_SECONDS = 0.5  # until the driver's next tick
_UNHEARD_SECONDS = SILENCE_SECONDS + 0.4
_RELEASED_SECONDS = HOLD_SECONDS + 0.6
_BEGAN = 1000.0


def value_of_goal(number: int) -> float:
    """The pressure that a goal asks for, Pa; by it a setpoint tells whose it is."""
    return _BASE + _STEP * number


class Promises:
    """Takes what happened; `broken` says what must not have.

    - Nothing queued moves: what was asked for before the newest stop, fault, reset, deactivation or sleep, or before
      its commander let the robot go.
    - Nothing old moves: what nobody took up within `ASKED_SECONDS`, or who took it up stood still after that.
    - What is reported safe is measured safe: state, each actuator, the answer to a stop.
    - A reset clears what was seen: no fault that came after the state by which it was asked for.
    - One holder: the robot moves for the commander to whom the newest lease was given.
    - A stop vents, within half a second from when the driver's process took it.
    - A driver that is dead or frozen vents: its guardian sees to it.
    - Holding ends.
    """

    def __init__(self, world: World, chambers: Chambers) -> None:
        self._world, self._chambers = world, chambers
        self.broken: list[str] = []
        self._asked: dict[int, tuple[float, str]] = {}
        self._begun: dict[int, float] = {}
        self._taken: dict[int, float] = {}
        self._released: defaultdict[str, float] = defaultdict(lambda: -1.0)
        self._let_go: defaultdict[str, float] = defaultdict(lambda: -1.0)
        self._standstills: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        self._ended, self._ended_by, self._slept = -1.0, "", -1.0
        self._faults: list[tuple[float, str]] = []
        self._holder = ""
        self._goal, self._goal_since = 0, world.now
        self._frozen_until = self._stop_due = 0.0
        self._died: float | None = None
        self._frozen_since: float | None = None

    def _break(self, promise: str, what: str) -> None:
        if not any(one.startswith(promise) for one in self.broken):
            self.broken.append(f"{promise}: {what} (at {self._world.now - _BEGAN:.2f} s)")

    def note_goal(self, number: int, commander: str) -> None:
        """A client has asked a commander for a motion."""
        self._asked[number] = self._world.now, commander

    def note_taken(self, number: int) -> None:
        """A commander has taken a goal up; another time if it came twice."""
        self._taken[number] = self._world.now

    def note_standstill(self, commander: str, until: float) -> None:
        """A commander runs nothing before that moment, s."""
        self._standstills[commander].append((self._world.now, until))

    def note_lease(self, source: str) -> None:
        """The driver has given its lease."""
        self._holder = source

    def note_targets(self, value: float) -> None:
        """The board has been sent targets, the highest of them in Pa."""
        number = round((value - _BASE) / _STEP)
        if number not in self._asked:
            return
        (asked, commander), now = self._asked[number], self._world.now
        begun = self._begun.setdefault(number, now)
        if number != self._goal:
            self._goal, self._goal_since = number, now
        if asked <= self._ended:
            self._break(
                "nothing queued moves",
                f"goal {number} was asked for {now - asked:.2f} s ago, before the {self._ended_by} "
                f"{now - self._ended:.2f} s ago, and moves the robot",
            )
        if asked <= self._released[commander] and self._let_go[commander] < now - _RELEASE_SECONDS:
            self._break("nothing queued moves", f"goal {number} was asked for before {commander} let the robot go")
        if asked <= self._slept < now - _NOTICED_SECONDS:
            self._break("nothing queued moves", f"goal {number} was asked for before the computer slept, and moves it")
        taken = self._taken.get(number, asked)
        if taken - asked > ASKED_SECONDS + _SLACK_SECONDS:
            self._break(
                "nothing old moves", f"goal {number} was asked for {taken - asked:.2f} s before it was taken up"
            )
        stood_still = max(
            (end - start for start, end in self._standstills[commander] if taken < start < end <= begun), default=0
        )
        if stood_still > STANDSTILL_SECONDS + _SLACK_SECONDS:
            self._break(
                "nothing old moves", f"{commander} stood still for {stood_still:.2f} s before it began {number}"
            )
        if commander != self._holder:
            self._break("one holder", f"the robot moves for {commander}, and the lease is with {self._holder}")

    def note_end(self, by: str) -> None:
        """Something has ended all that was asked for before."""
        self._ended, self._ended_by = self._world.now, by

    def note_release(self, commander: str, asked: float) -> None:
        """A commander has let the robot go, as somebody asked at that moment, s."""
        self._released[commander], self._let_go[commander] = asked, self._world.now

    def note_sleep(self) -> None:
        """The computer has slept, just now."""
        self._slept = self._world.now

    def note_fault(self, reason: str) -> None:
        """The driver notes a fault."""
        self._faults.append((self._world.now, reason))
        self.note_end("stop" if reason.startswith("stopped by request") else "fault")

    def note_reset(self, seen: float) -> None:
        """A reset has cleared what was latched; its caller had seen the driver's state of the moment `seen`, s."""
        unseen = [reason for moment, reason in self._faults if moment > seen]
        if unseen:
            self._break("a reset clears what was seen", f"it cleared, unseen: {unseen[0]}")
        self._faults.clear()
        self.note_end("reset")

    def note_report(self, report: DriverReport) -> None:
        """The driver reports its state."""
        if report.state is not State.SAFE and not report.is_at_rest:
            return
        if (highest := self._chambers.highest()) > REST:
            self._break(
                "what is reported safe is measured safe", f"the driver reports {report.state.name} at {highest:.0f} Pa"
            )

    def note_stop(self) -> None:
        """The driver's process has taken a stop."""
        self._stop_due = self._world.now + _STOPPED_SECONDS

    def note_stop_answered(self) -> None:
        """A stop was answered: all is safe."""
        if (highest := self._chambers.highest()) > REST:
            self._break("what is reported safe is measured safe", f"stop was answered at {highest:.0f} Pa")

    def note_frozen(self, until: float) -> None:
        """The driver runs nothing before that moment, s."""
        if self._world.now >= self._frozen_until:
            self._frozen_since = self._world.now
        self._frozen_until = max(self._frozen_until, until)
        self._stop_due = 0.0

    def note_death(self) -> None:
        """The driver was killed."""
        self._died, self._stop_due = self._world.now, 0.0

    def note_start(self) -> None:
        """The next driver starts."""
        self._died, self._frozen_until = None, 0.0

    def look(self) -> None:
        """Look at the robot now; called several times a second."""
        now, is_high = self._world.now, self._chambers.runs and self._chambers.wanted > REST
        if not is_high:
            self._stop_due = 0.0
            return
        if 0.0 < self._stop_due < now:
            self._break("a stop vents", f"the board regulates at {self._chambers.wanted:.0f} Pa")
        is_frozen = now < self._frozen_until and self._frozen_since is not None
        if is_frozen and now - (self._frozen_since or now) > _UNHEARD_SECONDS:
            self._break("a frozen driver vents", f"the board regulates at {self._chambers.wanted:.0f} Pa")
        if self._died is not None and now - self._died > _STOPPED_SECONDS:
            self._break("a dead driver vents", f"the board regulates at {self._chambers.wanted:.0f} Pa")
        if now - self._goal_since > _RELEASED_SECONDS and not is_frozen:
            self._break("holding ends", f"goal {self._goal} is held for {now - self._goal_since:.2f} s")
