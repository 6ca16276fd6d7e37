"""Parts of pages between marks, made of what runs have printed.

A template is text with fields as Python's str.format has them: `{run[key][key]:.2f}` is a value of a run. Of a list,
a key is a number, or the `reality` of one of its objects. `{commands[run]}` is the run's command, `{seconds[run]}` how
long it took. Besides Python's own, a format of `.0%` writes a share as `92 %`, one of `.1p` as `92.3`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from softform_core.errors import SoftformError
from softform_core.files import write_atomically

END = "<!-- end -->"
_OTHER = ("commands", "seconds")


@dataclass(frozen=True)
class FigureValues:
    """What the fields of templates stand for, by the names of the runs: figures, commands, seconds."""

    figures: Mapping[str, Any]
    commands: Mapping[str, str]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class Block:
    """A part of a page (from the checkout's root): the name in its mark, and its template."""

    page: str
    name: str
    text: str

    @property
    def begin(self) -> str:
        """The mark before it."""
        return f"<!-- made by ./softform figures: {self.name} -->"

    @property
    def runs(self) -> set[str]:
        """Runs that it is made of."""
        fields = [field for _, field, _, _ in Formatter().parse(self.text) if field is not None]
        firsts = {field.partition("[")[0]: field for field in fields}
        timed = {re.findall(r"\[(.*?)\]", field)[0] for field in fields if field.startswith("seconds[")}
        return {first for first in firsts if first not in _OTHER} | timed

    def written(self, values: FigureValues) -> str:
        """The template, filled."""
        fields = {**values.figures, "commands": values.commands, "seconds": values.seconds}
        return _Filled().vformat(self.text, (), fields).strip("\n")

    def within(self, root: Path) -> str:
        """What stands between the marks in the page.

        Raises:
            SoftformError: If the marks are not there.
        """
        return self._parts((root / self.page).read_text(encoding="utf-8"))[1]

    def write(self, root: Path, values: FigureValues) -> None:
        """Put the filled template between the marks.

        Raises:
            SoftformError: If the marks are not there, or the page cannot be written.
        """
        before, _, after = self._parts((root / self.page).read_text(encoding="utf-8"))
        write_atomically(root / self.page, f"{before}{self.begin}\n{self.written(values)}\n{END}{after}".encode())

    def _parts(self, page: str) -> tuple[str, str, str]:
        before, begin, rest = page.partition(f"{self.begin}\n")
        within, end, after = rest.partition(f"\n{END}")
        if not begin or not end:
            raise SoftformError(
                f"{self.page} has no place for '{self.name}'.",
                f"Put lines '{self.begin}' and '{END}' where it belongs, one line between them.",
            )
        return before, within, after


class _Filled(Formatter):
    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        first = field_name.partition("[")[0]
        value = kwargs[first]
        for key in re.findall(r"\[(.*?)\]", field_name):
            if isinstance(value, list):
                value = value[int(key)] if key.isdigit() else next(one for one in value if one.get("reality") == key)
            else:
                value = value[key]
        return value, first

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.endswith("%"):
            return f"{format(100.0 * value, format_spec[:-1] + 'f')} %"
        if format_spec.endswith("p"):
            return format(100.0 * value, format_spec[:-1] + "f")
        return format(value, format_spec)


def write_blocks(root: Path, blocks: Sequence[Block], values: FigureValues) -> list[tuple[Block, list[str]]]:
    """Write all blocks whose runs are there.

    Returns:
        The others, which stay as they are, with the names of the absent runs.

    Raises:
        SoftformError: If marks are not there, or a page cannot be written.
    """
    waiting = []
    for block in blocks:
        if absent := sorted(block.runs - set(values.figures)):
            waiting.append((block, absent))
        else:
            block.write(root, values)
    return waiting
