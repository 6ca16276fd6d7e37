"""Between the requests of the service `rig/inject_fault` and faults."""

import math

from softform_core.errors import SoftformError
from softform_interfaces.srv import InjectFault
from softform_rig.faults import KINDS, Fault, fault_values

_NUMBER_OF = {name: getattr(InjectFault.Request, name.upper()) for name in KINDS}
_KIND_OF = {number: KINDS[name] for name, number in _NUMBER_OF.items()}


def fault_from_request(request: InjectFault.Request) -> Fault | None:
    """The fault that is asked for; None to clear all. SoftformError as of `parse_fault`."""
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
    values = fault_values(kind, [str(number) for number in request.numbers], list(request.markers))
    return Fault(kind, values, request.start, duration, request.device)


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
