"""How busy the processors were: a benchmark of the running stack cannot be better than that allows."""

import psutil


def processor_shares() -> dict[str, float]:
    """Per cent of the processors' time since this thread's last call.

    Returns:
        What all there is had `in_use`, and what the host of a virtual machine had `stolen`.
    """
    shares = psutil.cpu_times_percent()
    stolen = float(getattr(shares, "steal", 0.0))
    idle = shares.idle + getattr(shares, "iowait", 0.0)
    return {"in_use": round(100.0 - idle - stolen, 1), "stolen": stolen}
