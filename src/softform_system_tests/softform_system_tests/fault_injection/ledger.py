"""What has been injected already: one JSON line an injection, so that a campaign that was cut off goes on."""

import json
from pathlib import Path

from softform_core.errors import SoftformError
from softform_system_tests.fault_injection.outcome import Outcome


class Ledger:
    """Outcomes by the number of their injection in the script, in a file that is begun if it is missing.

    Raises:
        SoftformError: If it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there; a last line that was cut off is dropped."""
        self.path = path
        self.outcomes: dict[int, Outcome] = {}
        if path.exists():
            *whole, _ = path.read_text(encoding="utf-8").split("\n")
            for line in whole:
                self._take(line)
            path.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")

    def _take(self, line: str) -> None:
        try:
            kept = json.loads(line)
            number = int(kept.pop("number"))
            self.outcomes[number] = Outcome(**kept)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SoftformError(
                f"{self.path} holds a line that is no outcome: {line[:80]!r}.", "Give another --ledger."
            ) from error

    def keep(self, number: int, outcome: Outcome) -> None:
        """Add one, on disk at once.

        Raises:
            SoftformError: If it cannot be written.
        """
        self.outcomes[number] = outcome
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"number": number, **outcome.as_dict()}) + "\n")
        except OSError as error:
            raise SoftformError(f"{self.path} cannot be written: {error.strerror}.", "Free space there.") from error
