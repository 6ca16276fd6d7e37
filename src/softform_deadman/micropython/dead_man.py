"""Dead-man on a Raspberry Pi Pico: pumps and valves have power only while a live driver says so (docs/dead-man.md)."""

import os
import select
import sys
import time

from machine import ADC, WDT, Pin

CUT_MS = 500  # without a valid heartbeat
WATCHDOG_MS = 500  # after which a program that hangs is restarted, which opens the relay
TELL_MS = 100
RELEASE_MS = 200  # within which the switched supply is gone once the relay is open
CLOSED_MV = 3000  # of the switched supply, above which the relay counts as closed
FULL_SCALE_MV = 3300 * 11  # of the ADC, behind 100 kOhm over 10 kOhm
LONGEST_LINE = 40


def sealed(words, salt=""):
    """Put the CRC-16 of words and salt behind the words: polynomial 1021, from FFFF."""
    crc = 0xFFFF
    for byte in (words + salt).encode():
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xFFFF
    return f"{words} {crc:04x}"


relay, supply, watchdog = Pin(15, Pin.OUT, value=0), ADC(26), None
waiting = select.poll()
waiting.register(sys.stdin, select.POLLIN)
state, challenge, sequence, line, told = "cut", "", 0, "", ""
heard_at = open_at = told_at = time.ticks_ms()
try:
    while True:
        byte = sys.stdin.buffer.read(1) if waiting.poll(5) else None
        now, words = time.ticks_ms(), []
        if byte == b"":
            break
        if byte == b"\n":
            text, line = line.strip(), ""
            words = text.split()
        elif byte and len(line) < LONGEST_LINE:
            line += chr(byte[0])

        if words == ["N"] and state == "cut":  # a challenge, so that no line of another time can arm
            challenge, heard_at = "".join(f"{byte:02x}" for byte in os.urandom(4)), now
            sys.stdout.write(sealed("N " + challenge) + "\n")
        elif words[:1] == ["A"] and state == "cut":
            if challenge and text == sealed("A", challenge) and time.ticks_diff(now, heard_at) < CUT_MS:
                state, sequence, heard_at = "armed", 0, now
                watchdog = watchdog or WDT(timeout=WATCHDOG_MS)
            else:
                challenge = ""
        elif words[:1] == ["B"] and state == "armed":
            is_sound = text == sealed(" ".join(words[:2]), challenge)
            if is_sound and int(words[1]) > sequence:
                sequence, heard_at = int(words[1]), now
        if state == "armed" and time.ticks_diff(now, heard_at) > CUT_MS:
            state = "latched"
        if words[:1] == ["X"]:
            state, challenge = "cut", ""
        relay.value(state == "armed")

        millivolts = supply.read_u16() * FULL_SCALE_MV // 65535
        is_closed = millivolts > CLOSED_MV
        if state == "armed" or not is_closed:
            open_at = now
        elif time.ticks_diff(now, open_at) > RELEASE_MS:
            state = "welded"
        changed, told = told, f"S {state} {is_closed:d}"
        if told != changed or time.ticks_diff(now, told_at) >= TELL_MS:
            told_at = now
            sys.stdout.write(sealed(f"{told} {sequence} {millivolts}") + "\n")
        if watchdog:
            watchdog.feed()
finally:  # also after Ctrl-C, and after a fault of this program
    relay.value(0)
