"""NVIDIA warp, an extra, and its devices: loaded where a device is asked for, and nowhere else."""

from typing import Any

from softform_core.errors import SoftformError

INSTALL = ".venv/bin/pip install -r requirements-warp.txt"


def load_warp(device: str) -> Any:
    """The module `warp`.

    Raises:
        SoftformError: If it is not installed, or there is no such device.
    """
    try:
        import warp
    except ImportError as error:
        raise SoftformError(f"Warp cannot be imported: {error}.", f"Install it: {INSTALL}") from error
    warp.config.log_level = warp.LOG_WARNING  # it says what it compiles on standard output
    try:
        warp.get_device(device)
    except (ValueError, RuntimeError) as error:
        found = ", ".join(str(one) for one in warp.get_devices())
        raise SoftformError(
            f"There is no device '{device}' here; there is {found}.", "Name one, or leave --device out."
        ) from error
    return warp
