"""Many membranes or rods at once on a device, as `softform simulate --device` solves them, beside the single solver."""

import time

import numpy as np
from threadpoolctl import threadpool_limits

from softform_core.arrays import Array
from softform_core.robots import load_robot
from softform_core.simulation.sampled_body import SampledBody, Solved
from softform_studies.simulate import PAPER_SECONDS, random_commands

_ROBOTS = {"membrane": ("vertices", 20), "three_chamber": ("tip", 512)}
"""What is compared, and of how many shapes: of rods those of a block, which the single solver solves many at once."""


def run(device: str, shapes: int = 1000, seed: int = 0) -> dict[str, object]:
    """Solve random actuations of a membrane and of a rod on a device twice, and the first of them by the single solver.

    Args:
        device: `cuda:0` and so on, or `cpu`.
        shapes: Number of random actuations.
        seed: Seed of the actuations.

    Returns:
        JSON-ready figures of the membrane: the device's, the single solver's on one core, their ratio, the paper's;
        and of the rod, under `others`.

    Raises:
        SoftformError: If warp is not installed, or there is no such device.
    """
    with threadpool_limits(1):
        membrane, rod = (_beside_the_single_solver(name, device, shapes, seed) for name in _ROBOTS)
    others = {rod["robot"]: rod}
    return {**membrane, "paper_seconds_per_shape": PAPER_SECONDS["membrane"], "others": others}


def _beside_the_single_solver(name: str, device: str, shapes: int, seed: int) -> dict[str, object]:
    robot, (place, shapes_compared) = load_robot(name), _ROBOTS[name]
    commands = random_commands(robot, shapes, seed)
    began = time.perf_counter()
    many = robot.body.batched(device)
    _solve(many, commands[: many.block])
    prepared = time.perf_counter()
    found = _solve(many, commands)
    seconds = time.perf_counter() - prepared
    again = _solve(many, commands)
    places, places_again = (np.concatenate([one.outputs[place] for one in both]) for both in (found, again))

    single, compared = robot.body.sampled(), commands[:shapes_compared]
    _solve(single, 0.01 * commands[:1])  # compiles the kernels
    begin = time.process_time()
    theirs = _solve(single, compared)
    core_seconds = (time.process_time() - begin) / len(compared)
    gaps = np.concatenate([one.outputs[place] for one in theirs]) - places[: len(compared)]
    return {
        "robot": name,
        "device": device,
        "shapes": shapes,
        "block": many.block,
        "seconds_to_prepare": prepared - began,
        "seconds": seconds,
        "seconds_per_shape": seconds / shapes,
        "converged_share": float(np.mean([not reason for one in found for reason in one.failures])),
        "left_to_the_single_solver": sum(int(one.singly.sum()) for one in found if one.singly is not None),
        "same_bits_again": bool(np.array_equal(places, places_again)),
        "single_solver": {
            "shapes": len(compared),
            "core_seconds_per_shape": core_seconds,
            "largest_distance_m": float(np.abs(gaps).max()),
        },
        "single_over_device": core_seconds * shapes / seconds,
    }


def _solve(body: SampledBody, commands: Array) -> list[Solved]:
    """All outputs, block by block; of a rod the derivatives by the actuators, too."""
    blocks = np.split(commands, range(body.block, len(commands), body.block))
    return [body.solve(block, np.tile(np.eye(block.shape[1]), (len(block), 1, 1))) for block in blocks]
