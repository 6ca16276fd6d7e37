"""Whether the disk has room for what is collected: looked at before the robot moves and before every frame."""

import shutil
from pathlib import Path

from softform_collect.goal import AGAIN, Code, CollectError


def check_free_disk(place: Path, least_free: float, needed: float = 0.0) -> None:
    """End collecting while there is still room to close everything in order.

    Args:
        place: Data set, which need not exist yet.
        least_free: Bytes that are left free.
        needed: Bytes that are still to be written.

    Raises:
        CollectError: If less is free.
    """
    existing = next(one for one in (place, *place.parents) if one.exists())
    free = shutil.disk_usage(existing).free
    if free >= least_free + needed:
        return
    what = f"{needed / 1e6:.0f} MB are still to be written and " if needed else ""
    raise CollectError(
        Code.STORE_FAILED,
        f"The disk of {place} has {free / 1e6:.0f} MB left; {what}{least_free / 1e6:.0f} MB are to stay free.",
        f"Free space, or give another --output. {AGAIN}",
    )
