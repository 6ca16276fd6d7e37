"""How busy the processors were: a benchmark of the running stack cannot be better than that allows."""

import psutil


class ProcessorShares:
    """Counts from when it is made."""

    def __init__(self) -> None:
        """Begin."""
        self._before = psutil.cpu_times()

    def so_far(self) -> dict[str, float]:
        """Per cent of the processors' time: in use by all there is, and taken by the host of a virtual machine."""
        now = psutil.cpu_times()
        # A guest's time is part of the user's.
        counted = [name for name in now._fields if not name.startswith("guest")]
        spent = {name: getattr(now, name) - getattr(self._before, name) for name in counted}
        whole = max(sum(spent.values()), 1e-9)
        stolen, idle = spent.get("steal", 0.0), spent["idle"] + spent.get("iowait", 0.0)
        return {
            "in_use": round(100.0 * (whole - idle - stolen) / whole, 1),
            "stolen": round(100.0 * stolen / whole, 1),
        }
