"""Bytes of any kind at the parsers of NatNet and QTM: rejected or read, never a crash, a hang or a wrong frame."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softform_system_tests.fuzz_targets import motion_capture as fuzz_targets

pytestmark = pytest.mark.slow

SETTINGS = settings(max_examples=250, deadline=10_000, suppress_health_check=[HealthCheck.too_slow])
SEEDS = {target: fuzz_targets.SEEDS[target.__name__] for target in fuzz_targets.TARGETS}


@pytest.mark.parametrize("target", fuzz_targets.TARGETS, ids=lambda target: target.__name__)
def test_any_bytes(target):
    SETTINGS(given(st.binary(max_size=300))(target))()


@pytest.mark.parametrize("target", SEEDS, ids=lambda target: target.__name__)
def test_damaged_packets(target):
    """Valid packets with bytes changed, cut out, doubled: they come far into the parsers."""

    @SETTINGS
    @given(st.sampled_from(SEEDS[target]), st.randoms(use_true_random=False), st.integers(0, 8))
    def damaged(packet, chance, times):
        target(damage(packet, chance, times))

    damaged()


@pytest.mark.parametrize("target", SEEDS, ids=lambda target: target.__name__)
def test_whole_packets_are_read(target, monkeypatch):
    """So that the tests above do not pass because nothing is ever accepted."""

    class RejectedError(Exception):
        pass

    monkeypatch.setattr(fuzz_targets, "MalformedPacketError", RejectedError)
    for packet in SEEDS[target]:
        target(packet)


def damage(packet: bytes, chance: random.Random, times: int) -> bytes:
    """A packet with `times` defects."""
    data = bytearray(packet)
    for _ in range(times):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            data[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 1:
            data[at : at + 4] = chance.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\xc0\x7f", b"\0\0\0\x80"])
        elif kind == 2:
            del data[at : at + chance.randrange(40)]
        else:
            data[at:at] = data[at : at + chance.randrange(40)]
    return bytes(data)
