"""Plug-ins by name, from every installed package that offers one by an entry point."""

from importlib.metadata import entry_points
from typing import Any

from softform_core.errors import SoftformError


def plugin_kinds(group: str) -> list[str]:
    """Return the names of all kinds that are installed."""
    return sorted({point.name for point in entry_points(group=group)})


def load_plugin(group: str, kind: str, what: str) -> tuple[Any, str]:
    """Load what the entry point of a kind names.

    Args:
        group: Group of the entry points.
        kind: Name of the entry point.
        what: A word for such a plug-in, for messages.

    Returns:
        The object, and where it comes from (`module:NAME`), for messages.

    Raises:
        SoftformError: If there is no such kind, or its package cannot be loaded.
    """
    points = [point for point in entry_points(group=group) if point.name == kind]
    if not points:
        raise SoftformError(
            f"There is no {what} of kind '{kind}'.",
            f"Known: {', '.join(plugin_kinds(group))}. Another package may add one (docs/extending.md).",
        )
    try:
        return points[0].load(), points[0].value
    except (ImportError, AttributeError) as error:
        raise SoftformError(
            f"The {what} '{kind}' of {points[0].value} cannot be loaded: {error}.", "Install its package again."
        ) from error
