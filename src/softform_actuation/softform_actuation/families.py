"""The families of devices: kinds by name, from every installed package that offers one.

A package adds a family by an entry point of the group `softform.devices`: `kind = module:FAMILY`, an object that fills
`DeviceFamily`.
"""

from functools import cache

from softform_actuation.device import DeviceFamily
from softform_core.errors import SoftformError
from softform_core.plugins import load_plugin

GROUP = "softform.devices"


@cache
def device_family(kind: str) -> DeviceFamily:
    """The family of a kind.

    Raises:
        SoftformError: If there is no such kind, or its package cannot be loaded.
    """
    loaded, origin = load_plugin(GROUP, kind, "device")
    family: DeviceFamily = loaded
    if not all(hasattr(family, name) for name in ("parameters", "adapters", "make")):
        raise SoftformError(f"The device '{kind}' of {origin} is no family.", "See docs/extending.md.")
    return family
