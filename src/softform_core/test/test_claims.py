"""A name has one holder on a machine: others are told who, and a killed holder's name is free."""

import os
import signal
import subprocess
import sys
import time

import pytest

from softform_core.claims import ClaimedError, claim

DOMAIN = 1000 + os.getpid()  # no ROS domain: nobody's
HOLDER = """
import sys, time
from softform_core.claims import claim
held = claim("/lab/actuation", int(sys.argv[1]))
print("holds", flush=True)
time.sleep(60)
"""


def test_others_are_told_who_holds_a_name_until_its_process_is_killed():
    began = time.time()
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(DOMAIN)], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"holds\n"
        for _ in range(3):
            with pytest.raises(ClaimedError, match="/lab/actuation is there already") as caught:
                claim("/lab/actuation", DOMAIN)
            assert f"process {process.pid} on this machine" in caught.value.holder
            since = caught.value.holder.removeprefix("since ")[:19]
            assert abs(time.mktime(time.strptime(since, "%Y-%m-%d %H:%M:%S")) - began) < 5.0
        claim("/lab/actuation", DOMAIN + 1).close()
        claim("/lab2/actuation", DOMAIN).close()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    claim("/lab/actuation", DOMAIN).close()


def test_a_name_of_any_length_is_free_again_once_it_is_given_up():
    name = "/" + 50 * "very/long/"
    with claim(name, DOMAIN), pytest.raises(ClaimedError):
        claim(name, DOMAIN)
    claim(name, DOMAIN).close()


def test_a_holder_that_was_asked_very_often_still_holds():
    with claim("/lab/asked", DOMAIN):
        for _ in range(200):
            with pytest.raises(ClaimedError) as caught:
                claim("/lab/asked", DOMAIN)
        assert caught.value.holder == "on this machine, perhaps in a container"
