"""XML of a launch file as a tree whose every element knows its file and line."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from softform_core.errors import SoftformError


class LaunchFileError(SoftformError):
    """A launch file cannot be run; the message begins with `file:line`."""

    def __init__(self, file: Path, line: int, message: str, next_step: str = "") -> None:
        super().__init__(f"{file}:{line}: {message}", next_step)
        self.line = line


@dataclass
class Element:
    """One element of a launch file."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list["Element"] = field(default_factory=list)

    def error(self, message: str, next_step: str = "") -> LaunchFileError:
        """Return an error that points at this element."""
        return LaunchFileError(self.file, self.line, message, next_step)

    def walk(self) -> Iterator["Element"]:
        """Yield this element and everything below it, in document order."""
        yield self
        for child in self.children:
            yield from child.walk()


def read_launch_xml(file: Path) -> Element:
    """Read the root element of a launch file.

    Raises:
        LaunchFileError: If the file is missing, is not well-formed XML, holds text between tags, or its root is not
            `<launch>`.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise LaunchFileError(file, 0, f"cannot be read: {error.strerror}.", "Check the path.") from error

    parser = expat.ParserCreate()
    root: list[Element] = []
    open_elements: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, file, parser.CurrentLineNumber)
        (open_elements[-1].children if open_elements else root).append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        open_elements.pop()

    def text(characters: str) -> None:
        if characters.strip():
            raise LaunchFileError(
                file,
                parser.CurrentLineNumber,
                f"unexpected text '{characters.strip()}' inside <{open_elements[-1].tag}>.",
                "Launch files hold tags and attributes only; write remarks as <!-- comments -->.",
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise LaunchFileError(
            file, error.lineno, f"is not well-formed XML: {expat.ErrorString(error.code)}.", "Correct the line."
        ) from error
    if root[0].tag != "launch":
        raise root[0].error(f"the root tag is <{root[0].tag}>.", "Write the file as <launch> … </launch>.")
    return root[0]
