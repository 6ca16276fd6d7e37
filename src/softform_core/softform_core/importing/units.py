"""Units that users may state."""

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.units import MM_PER_M, PA_PER_KPA

_IN_SI = {"Pa": ("Pa", 1.0), "kPa": ("Pa", PA_PER_KPA), "m": ("m", 1.0), "mm": ("m", 1.0 / MM_PER_M)}


def in_si(values: Array, unit: str, wanted: str) -> Array:
    """Values in Pa, kPa, m or mm, in the SI unit that is wanted.

    Raises:
        SoftformError: If the unit is of another quantity.
    """
    base, factor = _IN_SI[unit]
    if base != wanted:
        raise SoftformError(f"The values are stated in {unit}, the robot takes {wanted}.", "Correct the unit.")
    return values * factor
