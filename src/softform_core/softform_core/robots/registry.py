"""The registry of bodies: kinds by name, from every installed package that offers one.

A package adds a kind by an entry point of the group `softform.bodies`: `kind = module:ClassDerivedFromBody`.
"""

from functools import cache

from softform_core.errors import SoftformError
from softform_core.plugins import load_plugin
from softform_core.robots.body import Body

GROUP = "softform.bodies"


@cache
def body_class(kind: str) -> type[Body]:
    """The class of a kind.

    Raises:
        SoftformError: If there is no such kind, or its package cannot be loaded.
    """
    found, origin = load_plugin(GROUP, kind, "body")
    if not (isinstance(found, type) and issubclass(found, Body)):
        raise SoftformError(
            f"The body '{kind}' of {origin} is not a class derived from Body.", "See docs/extending.md."
        )
    return found
