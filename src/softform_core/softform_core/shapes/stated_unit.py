"""The unit that a shape file says it is in: few formats have a place for it, so programs write it into comments."""

import re

START = 1000
"""Bytes of a file within which it says so."""

_WORD = rb"mm|cm|m|ft|feet|inch(?:es)?|(?:\xc2?\xb5|u)m|(?:milli|centi|micro)?met(?:er|re)s?"
_COMMENT = re.compile(rb"(?<![a-z])units?[ \t\"']*(?:[:=]|are|in)?[ \t\"']*(" + _WORD + rb")\b", re.IGNORECASE)
_NAME = re.compile(rb"(?<![a-z])[xyz](?: ?(mm|cm)|[ \t]*[\[(/_][ \t]*(in|" + _WORD + rb"))\b", re.IGNORECASE)
_ROW = re.compile(rb"^[ \t#/%]*(" + _WORD + rb")(?:[,;\s]+\1){2}\s*$", re.IGNORECASE | re.MULTILINE)


def stated_unit(content: bytes, is_table: bool) -> str | None:
    """The unit that the start of a file states, such as "mm", "cm" or "inch"; None if it states none.

    Args:
        content: The file.
        is_table: Whether names of columns, such as `x [mm]`, and a row of units below them may say it, too.
    """
    for pattern in (_COMMENT, _NAME, _ROW) if is_table else (_COMMENT,):
        if found := pattern.search(content, 0, START):
            word = next(filter(None, found.groups())).decode("latin-1").lower()
            return {"milli": "mm", "centi": "cm", "meter": "m", "metre": "m"}.get(word[:5], word)
    return None
