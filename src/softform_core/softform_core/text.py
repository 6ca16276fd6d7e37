"""Strings of others, made fit for logs, diagnostics and terminals."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_MESSAGE = 2000
"""Characters of what is said to people in one piece; what quotes more of what others sent helps nobody."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SPACES = "Zs"


def printable(text: str, most: int = 200, lines: bool = False) -> str:
    """A string that moves no cursor, colours nothing, turns no direction of writing, and is not longer than `most`.

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
    shown = "".join(each if each.isprintable() or _is_blank(each) else REPLACEMENT for each in text)
    return shown.replace("\n", "\n    ")


def _is_blank(character: str) -> bool:
    return character == "\n" or unicodedata.category(character) == _SPACES


def nearest(name: str, known: Iterable[str]) -> str:
    """What a misspelt name may mean, to be put behind it in a sentence; nothing if none is like it."""
    found = get_close_matches(name, list(known), 1)
    return f" (the nearest is {found[0]})" if found else ""
