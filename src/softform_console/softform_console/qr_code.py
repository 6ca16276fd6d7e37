"""An address as a QR code of the terminal, for tablets and headsets."""

_BLOCKS = {(True, True): " ", (True, False): "▄", (False, True): "▀", (False, False): "█"}
"""Two modules, the upper one first, by whether they are dark: light ones are drawn, as terminals are dark."""

_MARGIN = 2


def qr_code(text: str) -> str:
    """Return a QR code in lines of block characters; empty where segno is not installed (requirements-qr.txt)."""
    try:
        import segno
    except ImportError:
        return ""
    code = segno.make(text, error="l", micro=False)
    rows = [[bool(module) for module in row] for row in code.matrix_iter(border=_MARGIN)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return "\n".join("".join(_BLOCKS[pair] for pair in zip(upper, lower, strict=True)) for upper, lower in pairs)
