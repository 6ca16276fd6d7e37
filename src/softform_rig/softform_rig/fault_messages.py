"""Between the requests of the service `rig/inject_fault` and faults."""

import math

from softform_core.errors import SoftformError
from softform_interfaces.srv import InjectFault
from softform_rig.faults import KINDS, Fault, FaultKind, Value

_NUMBER_OF = {name: getattr(InjectFault.Request, name.upper()) for name in KINDS}
_KIND_OF = {number: KINDS[name] for name, number in _NUMBER_OF.items()}


def fault_from_request(request: InjectFault.Request) -> Fault | None:
    """The fault that is asked for; None to clear all.

    Raises:
        SoftformError: If the kind is unknown, a value is missing, superfluous or out of its bounds.
    """
    if request.kind == InjectFault.Request.CLEAR:
        return None
    kind = _KIND_OF.get(request.kind)
    if kind is None:
        raise SoftformError(f"There is no fault {request.kind}.", "InjectFault.srv lists the kinds.")
    for name, seconds in (("start", request.start), ("duration", request.duration)):
        if not (math.isfinite(seconds) and seconds >= 0.0):
            raise SoftformError(f"'{name}' is {seconds:g} s.", "Give a time that is finite and not negative.")
    if kind.is_moment and request.duration > 0.0:
        raise SoftformError(f"'{kind.name}' happens at once.", "Leave its duration 0.")
    duration = 0.0 if kind.is_moment else request.duration or math.inf
    return Fault(kind, _values(kind, request), request.start, duration, request.device)


def request_from_fault(fault: Fault | None) -> InjectFault.Request:
    """The request for a fault; the inverse of `fault_from_request`."""
    if fault is None:
        return InjectFault.Request(kind=InjectFault.Request.CLEAR)
    return InjectFault.Request(
        kind=_NUMBER_OF[fault.kind.name],
        numbers=[value for value in fault.values if isinstance(value, float)],
        markers=[value for value in fault.values if isinstance(value, str) and value],
        start=fault.start,
        duration=0.0 if fault.duration == math.inf else fault.duration,
        device=fault.device,
    )


def _values(kind: FaultKind, request: InjectFault.Request) -> tuple[Value, ...]:
    """Numbers and names in the order of the kind's quantities, defaults where there are too few."""
    numbers, names = list(request.numbers), list(request.markers)
    values: list[Value] = []
    for quantity in kind.values:
        given = names if quantity.is_name else numbers
        if given:
            values.append(quantity.parse(str(given.pop(0))))
        elif quantity.default is None:
            raise SoftformError(f"'{kind.name}' lacks its {quantity.name}.", f"It is written {kind.form}.")
        else:
            values.append(quantity.default)
    if numbers or names:
        raise SoftformError(f"'{kind.name}' has too many values.", f"It is written {kind.form}.")
    return tuple(values)
