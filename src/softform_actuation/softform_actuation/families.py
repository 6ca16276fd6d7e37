"""The families of devices: kinds by name, from every installed package that offers one.

A package adds a family by an entry point of the group `softform.devices`: `kind = module:FAMILY`, an object that fills
`DeviceFamily`.
"""

from functools import cache
from importlib.metadata import entry_points

from softform_actuation.device import DeviceFamily
from softform_core.errors import SoftformError

GROUP = "softform.devices"


def device_kinds() -> list[str]:
    """Names of all kinds that are installed."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@cache
def device_family(kind: str) -> DeviceFamily:
    """The family of a kind.

    Raises:
        SoftformError: If there is no such kind, or its package cannot be loaded.
    """
    points = [point for point in entry_points(group=GROUP) if point.name == kind]
    if not points:
        raise SoftformError(
            f"There is no device of kind '{kind}'.",
            f"Known: {', '.join(device_kinds())}. Another package may add one (docs/extending.md).",
        )
    try:
        family: DeviceFamily = points[0].load()
    except (ImportError, AttributeError) as error:
        raise SoftformError(
            f"The device '{kind}' of {points[0].value} cannot be loaded: {error}.", "Install its package again."
        ) from error
    if not all(hasattr(family, name) for name in ("parameters", "adapters", "make")):
        raise SoftformError(f"The device '{kind}' of {points[0].value} is no family.", "See docs/extending.md.")
    return family
