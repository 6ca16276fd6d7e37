"""Fixtures that every package's tests share: a ROS domain of their own, so that runs beside each other stay apart."""

import os
import random

import pytest

# The range that is free of ephemeral ports on Linux.
_HIGHEST_ROS_DOMAIN = 101


@pytest.fixture(scope="session", autouse=True)
def ros_domain() -> int:
    """Set a random ROS domain for this session and everything it starts; return it.

    Workers of pytest-xdist never share one.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    domain = 1 + worker + workers * random.SystemRandom().randrange(_HIGHEST_ROS_DOMAIN // workers)
    os.environ["ROS_DOMAIN_ID"] = str(domain)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    return domain
