"""Devices on which torch computes."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from softform_core.errors import SoftformError


def checked_device(name: str) -> torch.device:
    """Return the device of a name such as `cpu` or `cuda`.

    Raises:
        SoftformError: If PyTorch cannot compute on it.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise SoftformError(f"PyTorch cannot compute on '{name}': {reason}.", "Leave out --device.") from error
    return device


def move_parts(owner: object, device: torch.device) -> None:
    """Replace the tensors, networks and dataclasses of tensors that are attributes of an object by such on a device."""
    for name, part in vars(owner).items():
        setattr(owner, name, _moved(part, device))


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor | nn.Module):
        return value.to(device)
    if is_dataclass(value) and not isinstance(value, type):
        parts = ((field.name, getattr(value, field.name)) for field in fields(value))
        return replace(value, **{name: part.to(device) for name, part in parts if isinstance(part, Tensor)})
    return value
