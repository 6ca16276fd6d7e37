"""`softform bench simulate`: the cost of a simulated shape of the paper's bodies, on one core or many at once.

`core_seconds` are processor time, which other work on the machine does not lengthen.
"""

import importlib.util
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from softform_core.arrays import Array
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sampled_body import SampledBody, Solved
from softform_core.simulation.simulated_body import SimulatedBody
from softform_rig.gap import random_actuations

PAPER_SECONDS = {"membrane": 110.0, "compressible": 5.0, "mannequin": 150.0, "manipulator": 900.0}
"""Seconds a shape in Paper 000, Table II; its simulator and machine are not ours."""

_BESIDE_A_DEVICE = 20
"""Number of shapes that the single solver solves, too."""


def run(shapes: int = 20, seed: int = 0) -> dict[str, Any]:
    """Solve random actuations of every body of paper 000, one at a time on one core.

    Returns:
        JSON-ready figures of the membrane, of the other bodies that are quick to solve under `others`, and under
        `manipulator` of the soft manipulator: with SuperLU, and with MKL PARDISO where it is installed. The figure of a
        shape is the mean; of the manipulator, whose shapes differ much, it is the median.
    """
    with threadpool_limits(1):
        quick = {name: of_robot(name, shapes, seed) for name in PAPER_SECONDS if name != "manipulator"}
        manipulator = _of_manipulator(shapes, seed)
    return {"robot": "membrane", **quick.pop("membrane"), "others": quick, "manipulator": manipulator}


def of_robot(name: str, shapes: int, seed: int) -> dict[str, float]:
    """Return figures of a robot at so many random actuations."""
    robot = load_robot(name)
    found = _solved(robot.body.simulator(), robot.actuators_of(random_actuations(robot, shapes, seed)))
    return {
        **found,
        "core_seconds_per_shape": found["core_seconds_per_shape_mean"],
        "paper_seconds_per_shape": PAPER_SECONDS[name],
    }


def _of_manipulator(shapes: int, seed: int) -> dict[str, Any]:
    robot = load_robot("manipulator")
    commands, described = robot.actuators_of(random_actuations(robot, shapes, seed)), robot.body.simulator()
    problems = {"superlu": type(described)(described.solid, pardiso=False)}
    if importlib.util.find_spec("pypardiso"):
        problems["pardiso"] = described
    figures = {}
    for name, problem in problems.items():
        found = _solved(problem, commands)
        figures[name] = {**found, "core_seconds_per_shape": found["core_seconds_per_shape_median"]}
    return {"unknowns": len(described.rest), **figures, "paper_seconds_per_shape": PAPER_SECONDS["manipulator"]}


def _solved(body: SimulatedBody, commands: Array) -> dict[str, float]:
    """Return the processor time and iterations of the shape under each of the commands by itself."""
    find_equilibria(body, 0.01 * commands[:1])  # compiles the kernels
    core_seconds, found, started = [], [], time.perf_counter()
    for values in commands:
        begin = time.process_time()
        found.append(find_equilibria(body, values[None]))
        core_seconds.append(time.process_time() - begin)
    iterations = [one.iterations[0] for one in found]
    return {
        "shapes": len(commands),
        "converged_share": float(np.mean([one.found[0] for one in found])),
        "core_seconds_per_shape_mean": float(np.mean(core_seconds)),
        "core_seconds_per_shape_median": float(np.median(core_seconds)),
        "core_seconds_per_shape_max": float(np.max(core_seconds)),
        "wall_seconds_per_shape": (time.perf_counter() - started) / len(commands),
        "iterations_mean": float(np.mean(iterations)),
        "iterations_median": float(np.median(iterations)),
    }


def run_on_device(device: str, shapes: int = 1000, seed: int = 0) -> dict[str, Any]:
    """Solve random actuations of the membrane on a device, as `softform simulate --device` does, twice.

    Args:
        device: `cuda:0` and so on, or `cpu`.
        shapes: Number of random actuations; the single solver solves the first of them, too.
        seed: Seed of the actuations.

    Returns:
        JSON-ready figures: the device's, the single solver's on one core, their ratio, and the paper's.

    Raises:
        SoftformError: If warp is not installed, or there is no such device.
    """
    robot = load_robot("membrane")
    commands = robot.actuators_of(random_actuations(robot, shapes, seed))
    compared = commands[:_BESIDE_A_DEVICE]
    with threadpool_limits(1):
        began = time.perf_counter()
        many = robot.body.batched(device)
        _solved_in_blocks(many, commands[: many.block])
        prepared = time.perf_counter()
        found = _solved_in_blocks(many, commands)
        seconds = time.perf_counter() - prepared
        again = _solved_in_blocks(many, commands)
        single = robot.body.sampled()
        _solved_in_blocks(single, 0.01 * compared[:1])  # compiles the kernels
        begin = time.process_time()
        theirs = _vertices(_solved_in_blocks(single, compared))
        core_seconds = (time.process_time() - begin) / len(compared)
    vertices = _vertices(found)
    return {
        "robot": robot.name,
        "device": device,
        "shapes": shapes,
        "block": many.block,
        "seconds_to_prepare": prepared - began,
        "seconds": seconds,
        "seconds_per_shape": seconds / shapes,
        "converged_share": float(np.mean([not reason for one in found for reason in one.failures])),
        "left_to_the_single_solver": sum(int(one.singly.sum()) for one in found if one.singly is not None),
        "same_bits_again": bool(np.array_equal(vertices, _vertices(again))),
        "single_solver": {
            "shapes": len(compared),
            "core_seconds_per_shape": core_seconds,
            "largest_distance_m": float(np.abs(theirs - vertices[: len(compared)]).max()),
        },
        "single_over_device": core_seconds * shapes / seconds,
        "paper_seconds_per_shape": PAPER_SECONDS[robot.name],
    }


def _solved_in_blocks(body: SampledBody, commands: Array) -> list[Solved]:
    blocks = np.split(commands, range(body.block, len(commands), body.block))
    return [body.solve(block, np.tile(np.eye(block.shape[1]), (len(block), 1, 1))) for block in blocks]


def _vertices(solved: list[Solved]) -> Array:
    return np.concatenate([one.outputs["vertices"] for one in solved])
