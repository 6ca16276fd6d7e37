"""Programs of pages: read, shown to all, and run by a thread of its own with the code of `./softform run`."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from softform_client.client import ShapeClient
from softform_client.program import Place
from softform_client.program_file import Aim, ProgramFiles, ProgramText, Row
from softform_client.program_run import ProgramRun, Step
from softform_console.protocol import FromServer, Notice, Program, ProgramRead, ProgramRow, ProgramState
from softform_console.target_files import TargetFiles
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape

_AGAIN_SECONDS = 0.2
_CLOSE_SECONDS = 2.0


class PageFiles:
    """Files of a page's programs: shapes were dropped on the page, captures come into one folder.

    Args:
        targets: Target files that were dropped.
        folder: Where captures are written.
    """

    def __init__(self, targets: TargetFiles, folder: Path) -> None:
        self._targets, self._folder = targets, folder

    def shape(self, name: str, unit: Literal["m", "mm"]) -> Shape:
        """Return a target that was dropped."""
        return self._targets.named(name, unit)

    def capture(self, name: str) -> Path:
        """Return where a capture is to be written."""
        if Path(name).name != name or not Path(name).suffix:
            raise SoftformError(f"'{name}' is a path.", f"Give a name; captures of the page come into {self._folder}.")
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / name


class ProgramRuns:
    """Reads programs, runs the one that was read last, and tells how that goes.

    Args:
        namespace: ROS namespace of the stack.
        robot: The robot.
        files: Files that programs name.
        tell: Takes what pages should be told.
        on_end: Called with each program's end.
    """

    def __init__(
        self,
        namespace: str,
        robot: Robot,
        files: ProgramFiles,
        tell: Callable[[FromServer], None],
        on_end: Callable[[], None],
    ) -> None:
        self._namespace, self._robot, self._files, self._tell, self._on_end = namespace, robot, files, tell, on_end
        self._read: tuple[str, ProgramText, dict[Place, Aim]] | None = None
        self._run: ProgramRun | None = None
        self._thread: threading.Thread | None = None
        self._is_unwanted = threading.Event()

    @property
    def is_running(self) -> bool:
        """Whether a program runs."""
        return self.thread is not None

    @property
    def thread(self) -> threading.Thread | None:
        """Thread of the program that runs."""
        thread = self._thread
        return thread if thread is not None and thread.is_alive() else None

    def read(self, message: Program) -> None:
        """Read and check a program, and tell what it does, or why it cannot be run."""
        if self.is_running:
            self._tell(Notice(level="warning", about="program", text="A program runs. Wait for its end, or end it."))
            return
        title, fault, rows = "", "", []
        self._read = None
        try:
            text = ProgramText(message.text, "The program")
            title, rows = text.program.title, [_row(row) for row in text.rows]
            self._read = message.text, text, text.aims(self._robot, self._files)
        except SoftformError as error:
            fault = str(error)
        self._tell(ProgramRead(robot=message.robot, text=message.text, title=title, rows=rows, fault=fault))

    def begin(self, message: Program) -> None:
        """Run the program; returns at once.

        Raises:
            SoftformError: If one runs, or this is not what was read last.
        """
        if self.is_running:
            raise SoftformError("A program runs.", "Wait for its end, or end it.")
        if self._read is None or self._read[0] != message.text:
            raise SoftformError("This is not the program that was read last.", "Look at it again, and run it then.")
        _, text, aims = self._read
        self._is_unwanted = threading.Event()
        wanted = message, text, aims, self._is_unwanted
        self._thread = threading.Thread(target=self._carry_out, args=wanted, name="program", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """End the program that runs; the robot stays where it is."""
        if self.is_running:
            self._is_unwanted.set()
            threading.Thread(target=self._end, args=(self._thread,), name="end of program", daemon=True).start()

    def close(self) -> None:
        """End what runs."""
        self.cancel()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def _end(self, thread: threading.Thread) -> None:
        while thread.is_alive():
            run = self._run
            if run is not None:
                run.cancel()
            thread.join(_AGAIN_SECONDS)

    def _carry_out(
        self, message: Program, text: ProgramText, aims: dict[Place, Aim], is_unwanted: threading.Event
    ) -> None:
        places = [row.place for row in text.rows]
        numbers = {row.number: at for at, row in enumerate(text.rows)}

        def tell(row: int | None, said: str, ended: Literal["", "done", "stopped", "failed"] = "") -> None:
            self._tell(ProgramState(robot=message.robot, row=row, text=said, ended=ended))

        def begun(row: Row, said: str) -> None:
            tell(places.index(row.place), said or "…")

        def done(step: Step) -> None:
            said = f"{step.text}, {step.seconds:.1f} s" if step.text else f"{step.seconds:.1f} s"
            tell(numbers[step.block], said)

        try:
            with ShapeClient(self._namespace, self._robot.base_frame) as client:
                self._run = ProgramRun(text, aims, client, self._files, int(message.epoch), begun, done)
                if is_unwanted.is_set():
                    self._run.cancel()
                ended = self._run.run()
            tell(None if ended.row is None else places.index(ended.row.place), ended.text, ended.state)
        except Exception as error:  # the pages must hear of it
            tell(None, str(error), "failed")
        finally:
            self._run = None
            self._on_end()


def _row(row: Row) -> ProgramRow:
    return ProgramRow(depth=len(row.place) - 1, number=row.number, line=row.line, title=row.block.title)
