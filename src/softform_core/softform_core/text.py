"""Strings of others, made fit for logs, diagnostics and terminals."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_MESSAGE = 2000
"""Most characters of one message to people; longer quotes of what others sent help nobody."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SPACES = "Zs"


def printable(text: str, most: int = 200, lines: bool = False) -> str:
    """Return a string without control of cursor, colour or writing direction, and no longer than `most`.

    Args:
        text: Anything, as from the network or a file.
        most: Characters that are left of it; of a longer one the last is `…`.
        lines: Whether it may have several lines; those after the first are indented, so that none passes for a line of
            somebody else's. If not, ends of lines are spaces.
    """
    if len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    text = text.replace("\t", " ").replace("\r\n", "\n")
    if not lines:
        text = text.replace("\n", " ")
    shown = "".join(
        each if each.isprintable() or each == "\n" or unicodedata.category(each) == _SPACES else REPLACEMENT
        for each in text
    )
    return shown.replace("\n", "\n    ")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a guess at what a misspelt name means, to follow it in a sentence; empty if none is like it."""
    found = get_close_matches(name, list(known), 1)
    return f" (the nearest is {found[0]})" if found else ""
