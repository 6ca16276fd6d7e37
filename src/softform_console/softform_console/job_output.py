"""What a command writes to its terminal: whole lines, and the progress that its bars show."""

import codecs
import re
from dataclasses import dataclass

_LONGEST_LINE = 2000
_ENDS = re.compile(r"(\r*\n|\r+(?=[^\r\n]))")  # what a bar begins anew by, or a line ends by
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b.|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BAR = re.compile(
    r"(?P<title>[^\r\n]{0,200}?):? *(?P<percent>\d{1,3})%\|[^|]*\| *(?P<count>\S+/\S+) "
    r"\[[\d:]+<(?P<left>[\d:?]+)"
)
_REPLAYED = re.compile(r"^ *(?P<at>\d+\.\d) of (?P<end>\d+\.\d) s +\d+ messages ?")
"""What `replay` shows instead of a bar."""


@dataclass(frozen=True)
class Progress:
    """Progress of the step that a command is at.

    Attributes:
        step: Title of the bar with its count, such as `evaluate 3/40`.
        done: Share, 0 … 1.
        left: Time left, s; None if it is not known.
    """

    step: str
    done: float
    left: float | None


def progress_of(text: str) -> Progress | None:
    """Return the progress that a bar of tqdm or `replay` shows, or None if the text is none."""
    if (replayed := _REPLAYED.match(text)) is not None:
        at, end = float(replayed["at"]), float(replayed["end"])
        return Progress(f"{at:.0f} of {end:.0f} s", min(1.0, at / end) if end else 1.0, None)
    if "%|" not in text or (found := _BAR.search(text)) is None or int(found["percent"]) > 100:
        return None
    left: float | None = None
    if "?" not in found["left"]:
        left = 0.0
        for part in found["left"].split(":"):
            left = 60.0 * left + float(part or 0)
    step = f"{found['title'].strip()} {found['count']}".strip()
    return Progress(step, int(found["percent"]) / 100.0, left)


class TerminalOutput:
    """Parts the bytes of a terminal into lines, which are kept, and bars, of which the newest is.

    Whatever comes is text in the end: control characters are left out, and a line that does not end is ended.

    Attributes:
        progress: Of the newest bar; None before the first.
    """

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self._rest, self._decoder = "", codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, data: bytes) -> list[str]:
        """Take what came; returns the lines that are whole now."""
        *parts, self._rest = _ENDS.split(self._rest + self._decoder.decode(data))
        lines = []
        for text, end in zip(parts[::2], parts[1::2], strict=True):
            lines += self._line(text, end.endswith("\n"))
        while len(self._rest) > _LONGEST_LINE:
            lines += self._line(self._rest[:_LONGEST_LINE], True)
            self._rest = self._rest[_LONGEST_LINE:]
        if (bar := progress_of(self._rest.lstrip("\r"))) is not None:  # a bar is drawn without an end
            self.progress = bar
        return lines

    @property
    def unfinished(self) -> str:
        """The last line, which has no end yet, such as a question; empty if it is a bar."""
        return "" if progress_of(self._rest.lstrip("\r")) else _CONTROL.sub("", self._rest)[:_LONGEST_LINE].strip()

    def end(self) -> list[str]:
        """Return the last line, if it has no end."""
        rest, self._rest = self._rest, ""
        return self._line(rest, True)

    def _line(self, text: str, is_whole: bool) -> list[str]:
        text = _CONTROL.sub("", text)
        if (bar := progress_of(text)) is not None:
            self.progress = bar
            text = _REPLAYED.sub("", text) if _REPLAYED.match(text) else ""
        return [text[:_LONGEST_LINE].rstrip()] if is_whole and text.strip() else []
