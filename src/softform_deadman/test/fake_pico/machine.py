"""A Pico's pins for MicroPython's unix port: a relay that leaves its last level in a file."""

import os


def _exists(path):
    try:
        os.stat(path)
    except OSError:
        return False
    return True


class Pin:
    OUT = 1
    level = None

    def __init__(self, number, mode, value):
        self.value(value)

    def value(self, level):
        if level != Pin.level:
            Pin.level = level
            with open("relay", "a") as relay:
                relay.write("1" if level else "0")


class ADC:
    def __init__(self, number):
        pass

    def read_u16(self):
        return 43000 if Pin.level or _exists("welded") else 0  # 23.8 V


class WDT:
    def __init__(self, timeout):
        pass

    def feed(self):
        pass
