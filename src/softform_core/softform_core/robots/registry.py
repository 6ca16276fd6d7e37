"""The registry of bodies: kinds by name, from every installed package that offers one.

A package adds a kind by an entry point of the group `softform.bodies`: `kind = module:ClassDerivedFromBody`.
"""

from functools import cache
from importlib.metadata import entry_points

from softform_core.errors import SoftformError
from softform_core.robots.body import Body

GROUP = "softform.bodies"


def body_kinds() -> list[str]:
    """Names of all kinds that are installed."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@cache
def body_class(kind: str) -> type[Body]:
    """The class of a kind.

    Raises:
        SoftformError: If there is no such kind, or its package cannot be loaded.
    """
    points = [point for point in entry_points(group=GROUP) if point.name == kind]
    if not points:
        raise SoftformError(
            f"There is no body of kind '{kind}'.",
            f"Known: {', '.join(body_kinds())}. Another package may add one (docs/extending.md).",
        )
    try:
        found = points[0].load()
    except (ImportError, AttributeError) as error:
        raise SoftformError(
            f"The body '{kind}' of {points[0].value} cannot be loaded: {error}.", "Install its package again."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Body)):
        raise SoftformError(
            f"The body '{kind}' of {points[0].value} is not a class derived from Body.", "See docs/extending.md."
        )
    return found
