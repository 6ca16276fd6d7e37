"""What paper 003 finds of the parts of its loop, found again; stress (Figs. 21-22) has a module of its own.

Material (Fig. 4), linear objects (Table 1), samples (Table 2), features (Table 3), fitness (Fig. 20), meshes (Fig. 25).
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import cv2
import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.threads import one_thread
from softform_shaping.camera import DepthCamera, Intrinsics, Solid, looking_at
from softform_shaping.control import command, intermediate_target, shape_errors
from softform_shaping.controllers import Limits, Task
from softform_shaping.features import (
    cumulative_variance,
    explained_variance,
    inverse_interaction,
    principal_components,
)
from softform_shaping.linear_objects import curve_length, measured
from softform_shaping.model import HeldModel
from softform_shaping.objects import load_object
from softform_shaping.poses import limited, moved, pose_variation
from softform_shaping.preparation import prepared, prepared_task
from softform_shaping.printed import Printed, PrintedController, first_past
from softform_shaping.scene import make_scene
from softform_shaping.session import Iteration, shape_object
from softform_shaping.stress_study import stress
from softform_shaping.true_object import TrueObject
from softform_shaping.visual_mesh import VisualMesh

__all__ = ["STUDIES"]

Say = Callable[[str], None]


class Linear(NamedTuple):
    """An object of Table 1, and what the paper estimates, mm."""

    radius: float
    length: float
    printed: tuple[float, float]


_LINEAR = {
    "rope": Linear(3.0, 525.0, (3.0, 530.0)),
    "noodle_1": Linear(30.0, 630.0, (29.0, 625.0)),
    "noodle_2": Linear(30.0, 510.0, (27.0, 487.0)),
    "hidria_part": Linear(20.0, 355.0, (17.0, 350.0)),
}
_PICTURE = Intrinsics(1280, 720, 920.0)
"""About a D435's colour picture, to which the depth is aligned."""
_RINGS, _AROUND = 80, 48
_TURNS = np.array([[0.6], [0.2]])
"""rad by which an end turns across the view, and in depth: one that tilts much hides behind its gripper."""
_COLOUR, _GREEN, _SATURATED, _HUES = (230, 190, 40), (40, 190, 60), 70, (10, 40)
_HIDDEN, _THICKER = 0.04, 0.008
"""m of each end that a gripper hides, and by which it is thicker than the object."""


def dlo(seeds: range, say: Say) -> dict[str, Any]:
    """Table 1: radius and length of linear objects from one picture each, bent at random, by ours and as printed."""
    found: dict[str, Any] = {}
    for name, what in _LINEAR.items():
        pictures = (_seen_linear(what, np.random.default_rng([seed, 7])) for seed in seeds)
        runs = [run for run in pictures if run is not None]
        figures: dict[str, Any] = {"radius_mm": what.radius, "length_mm": what.length, "seen": len(runs)}
        if runs:
            for key in runs[0]:
                figures[key] = round(float(np.mean([run[key] for run in runs])), 4)
        found[name] = figures
        say(f"{name}: {figures}")
    means = {
        key: round(float(np.mean([one[key] for one in found.values() if key in one])), 4)
        for key in ("radius_error", "length_error", "as_printed_radius_error", "as_printed_length_error")
    }
    return {
        "objects": found,
        "pictures_each": len(seeds),
        **means,
        "paper": {
            "radius_error": 0.07,
            "length_error": 0.02,
            "estimates_mm": {n: o.printed for n, o in _LINEAR.items()},
        },
    }


def _seen_linear(what: Linear, random: np.random.Generator) -> dict[str, float] | None:
    """Shares by which radius and length between grippers of a bent object are missed; None if it is not recognised."""
    radius = 1e-3 * what.radius
    line, along = _bent_line(1e-3 * what.length, random)
    ends = int(np.ceil(_HIDDEN / (1e-3 * what.length) * (_RINGS - 1)))
    solids = [_tube(line, along, radius, _COLOUR)]
    for part in (slice(ends + 1), slice(-ends - 1, None)):
        solids.append(_tube(line[part], along[part], radius + _THICKER, _GREEN))
    middle = 0.5 * (line.min(axis=0) + line.max(axis=0))
    distance = 0.85 * 1e-3 * what.length + 0.1
    eye = middle + distance * np.array([random.uniform(-0.2, 0.2), -1.0, random.uniform(-0.2, 0.2)])
    camera = DepthCamera(looking_at(eye, middle, np.array([1.0, 0.0, 0.0])), _PICTURE)
    picture = camera.look(solids, random)
    hue, saturation, _ = np.moveaxis(cv2.cvtColor(picture.colour, cv2.COLOR_RGB2HSV), 2, 0)
    mask = (saturation > _SATURATED) & (hue > _HUES[0]) & (hue < _HUES[1])
    try:
        seen = measured(mask, picture.depth, camera.intrinsics)
    except SoftformError:
        return None
    length = curve_length(line[ends : len(line) - ends])
    return {
        "estimated_radius_mm": 1e3 * seen.radius,
        "estimated_length_mm": 1e3 * seen.length + what.length - 1e3 * length,
        "radius_error": abs(seen.radius / radius - 1.0),
        "length_error": abs(seen.length / length - 1.0),
        "as_printed_radius_error": abs(seen.printed_radius / radius - 1.0),
        "as_printed_length_error": abs(seen.printed_length / length - 1.0),
    }


def _bent_line(length: float, random: np.random.Generator) -> tuple[Array, Array]:
    """Points (K, 3) m of an axis along z that turns smoothly by angles at random, and its directions (K, 3)."""
    share = np.linspace(0.0, 1.0, _RINGS)
    bends = _TURNS * random.uniform(-1.0, 1.0, (2, 2))  # (x or y, first and second half wave)
    slopes = bends[:, :1] * np.cos(np.pi * share) + 0.5 * bends[:, 1:] * np.sin(2.0 * np.pi * share)
    sines, cosines = np.sin(slopes), np.cos(slopes)
    along = np.stack([sines[0], sines[1] * cosines[0], cosines[0] * cosines[1]], axis=1)
    step = length / (_RINGS - 1)
    return np.vstack([np.zeros(3), np.cumsum(step * 0.5 * (along[1:] + along[:-1]), axis=0)]), along


def _tube(line: Array, along: Array, radius: float, colour: tuple[int, int, int]) -> Solid:
    """A closed tube about an axis (K, 3) m with directions (K, 3)."""
    across = np.cross(along, [0.0, 1.0, 0.0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    third = np.cross(along, across)
    angle = np.linspace(0.0, 2.0 * np.pi, _AROUND, endpoint=False)
    ring = radius * (np.cos(angle)[:, None] * across[:, None] + np.sin(angle)[:, None] * third[:, None])
    vertices = (line[:, None] + ring).reshape(-1, 3)
    one, other = np.arange(_AROUND), (np.arange(_AROUND) + 1) % _AROUND
    faces = []
    for low in range(0, _AROUND * (len(line) - 1), _AROUND):
        high = low + _AROUND
        faces.append(np.stack([low + one, low + other, high + one], axis=1))
        faces.append(np.stack([low + other, high + other, high + one], axis=1))
    for ring_at in (0, _AROUND * (len(line) - 1)):
        faces.append(np.stack([ring_at + one[1:-1], ring_at + one[2:], np.full(_AROUND - 2, ring_at)], axis=1))
    return Solid(vertices, np.concatenate(faces), colour)


_MODULI, _RATIOS = (5e3, 5e4, 5e5, 5e6, 5e7), (0.1, 0.2, 0.3, 0.4, 0.45)
_SHIFT, _TURN = 0.02, np.pi / 10.0


def material(seeds: range, say: Say) -> dict[str, Any]:
    """Fig. 4: by how much shapes depend on E and nu, as one gripper moves along and turns about each axis."""
    described = load_object("sponge")
    body: Any = described.body
    e_middle, nu_middle = 2.5e6, 0.3

    def shapes(modulus: float, ratio: float) -> Array:
        law = body.material.model_copy(update={"coefficients": [modulus / (2.0 * (1.0 + ratio))]})
        model = HeldModel(body.model_copy(update={"material": law, "poisson_ratio": ratio}).simulator())
        moves = np.zeros((6, 12))
        moves[np.arange(6), 6 + np.arange(6)] = [_SHIFT] * 3 + [_TURN] * 3
        return np.stack([model.shape(move).nodes for move in moves])

    usual = shapes(e_middle, nu_middle)
    by_modulus = {f"{one:.0e}": _apart(shapes(one, nu_middle), usual) for one in _MODULI}
    by_ratio = {f"{one:g}": _apart(shapes(e_middle, one), usual) for one in _RATIOS}
    say(f"largest distance of a node, mm, by E {by_modulus}, by nu {by_ratio}")
    return {
        "max_mm_by_modulus": by_modulus,
        "max_mm_by_ratio": by_ratio,
        "paper": {"max_m_by_modulus": 5.3e-5, "max_m_by_ratio": 0.07},
    }


def _apart(one: Array, other: Array) -> float:
    return round(1e3 * float(np.linalg.norm(one - other, axis=2).max()), 4)


_SAMPLES, _TRIALS, _MOST = (13, 15, 25, 40), 3, 200
_TARGETS = {
    "bend": np.array([0.0, 0.0, 0.015, 0.0, 0.4, 0.0, 0.0, 0.0, -0.015, 0.0, -0.4, 0.0]),
    "twist and translate": np.array([0.02, 0.02, 0.0, 0.0, 0.0, -0.4, 0.02, 0.02, 0.0, 0.0, 0.0, 0.4]),
    "stretch and bend": np.array([0.0, 0.01, -0.008, 0.2, 0.2, 0.0, 0.0, 0.01, 0.008, -0.2, 0.2, 0.3]),
}


def samples(seeds: range, say: Say) -> dict[str, Any]:
    """Table 2: the printed controller in simulation alone, by the number of samples D; three targets, three trials."""
    _, model, _ = prepared("sponge")
    found: dict[str, Any] = {}
    for count in _SAMPLES:
        rows = {}
        for name, poses in _TARGETS.items():
            target = model.shape(poses).nodes
            began = time.process_time()
            ends = [
                _simulated(model, target, count, np.random.default_rng([seeds[0], trial])) for trial in range(_TRIALS)
            ]
            done = [end for end in ends if end is not None]
            rows[name] = {
                "successes": len(done),
                "iterations": round(float(np.mean(done)), 1) if done else None,
                "seconds": round((time.process_time() - began) / _TRIALS, 2),
            }
        found[str(count)] = rows
        say(f"D = {count}: {rows}")
    return {
        "by_samples": found,
        "trials": _TRIALS,
        "paper": {"13": [2, 3, 2], "15": [3, 3, 3], "25": [3, 3, 3], "40": [3, 3, 0]},
    }


def _simulated(model: HeldModel, target: Array, count: int, random: np.random.Generator) -> int | None:
    """Iterations until e < 0.05 m where the robot does what the model says; None if it is not within 200."""
    printed, limits = Printed(samples=count), Limits()
    past = first_past(model, model.rest, printed, limits.stretch, random)
    here = model.rest
    for number in range(1, _MOST + 1):
        if np.linalg.norm(target - here.nodes) < printed.error:
            return number
        components = principal_components(past.shapes, min(printed.features, count))
        shape = here.nodes.ravel()
        wanted = intermediate_target(target.ravel(), shape, printed.parts)
        step = command(inverse_interaction(past, components), components, wanted, shape, np.full(12, printed.gain))
        before = here
        try:
            here = model.shape(moved(here.poses, limited(step, limits.shift, limits.turn)), here)
        except SoftformError:
            return None
        past = past.with_new(here.nodes.ravel(), pose_variation(here.poses, before.poses))
    return None


_FEATURES, _PCA_TRIALS = (6, 8, 10, 12), 4


def variance(seeds: range, say: Say) -> dict[str, Any]:
    """Table 3: variance of first shapes that each component explains (Eq. 26), and the first ones together (Eq. 27)."""
    _, model, _ = prepared("sponge")
    own, together = [], []
    for trial in range(_PCA_TRIALS):
        random = np.random.default_rng([seeds[0], trial])
        components = principal_components(first_past(model, model.rest, Printed(), Limits().stretch, random).shapes, 12)
        own.append(explained_variance(components)[: _FEATURES[-1]])
        together.append(cumulative_variance(components))
    shares = np.mean(together, axis=0)
    cumulative = {str(count): round(float(shares[count - 1]), 3) for count in _FEATURES}
    say(f"cumulative variance: {cumulative}")
    return {
        "trials": _PCA_TRIALS,
        "explained": [round(float(share), 4) for share in np.mean(own, axis=0)],
        "cumulative": cumulative,
        "paper": {"cumulative": {"6": 0.90, "8": 0.97, "10": 0.98, "12": 0.99}},
    }


_FITNESS, _FITNESS_TASK, _FITNESS_MOST = (0.6, 0.8, 0.9, 0.95), "sponge_5", 20


def fitness(seeds: range, say: Say) -> dict[str, Any]:
    """Fig. 20: the printed controller by the fitness below which it corrects, and how far off its mesh then is."""
    described, task = prepared_task(_FITNESS_TASK)
    found = {}
    for least in _FITNESS:
        scene = make_scene(described, task.model, seeds[0])
        off: list[float] = []

        def watch(one: Iteration, off: list[float] = off, truth: TrueObject = scene.truth) -> None:
            off.append(shape_errors(one.estimate.nodes[truth.has], truth.nodes[truth.has])[0])

        controller = PrintedController(task, Printed(fitness=least), np.random.default_rng([seeds[0], 1]))
        shaped = shape_object(controller, scene, _FITNESS_MOST, watch=watch)
        found[f"{least:g}"] = {
            "corrections": sum(each.estimate.corrections for each in shaped.iterations),
            "mesh_error_mm": round(float(np.mean(off)), 3),
            "true_rms_mm": round(shaped.last.true_rms, 3),
            "s_correction": round(float(np.mean([each.steps[2] for each in shaped.iterations])), 4),
        }
        say(f"fitness {least:g}: {found[f'{least:g}']}")
    return {"task": _FITNESS_TASK, "iterations": _FITNESS_MOST, "by_fitness": found}


_MESH_SIZES, _STEPS = (0.034, 0.024, 0.02, 0.0165, 0.0135), 10


def meshes(seeds: range, say: Say) -> dict[str, Any]:
    """Fig. 25: processor time of a displacement of the first shapes, and of a small step, by the size of the mesh."""
    described = load_object("sponge")
    rows = []
    for size in _MESH_SIZES:
        body = described.body.model_copy(update={"mesh_size": size})
        model = HeldModel(body.simulator())
        visual = VisualMesh(model.skin, model.faces, len(model.rest_nodes), 2)
        task = Task(model, visual, model.rest_nodes)
        model.shape(np.full(12, 1e-3))  # compiled and factorised
        random = np.random.default_rng(seeds[0])
        began = time.process_time()
        first_past(model, model.rest, Printed(), task.limits.stretch, random)
        first = (time.process_time() - began) / (Printed().samples + 1)
        here, began = model.rest, time.process_time()
        for _ in range(_STEPS):
            step = random.uniform(-1.0, 1.0, (2, 2, 3)) * np.array([task.limits.shift, task.limits.turn])[:, None] / 3.0
            here = model.shape(moved(here.poses, step.ravel()), here)
        each = (time.process_time() - began) / _STEPS
        rows.append(
            {"nodes": len(model.rest_nodes), "tetrahedra": len(model.tetrahedra), "s_first": round(first, 4),
             "s_step": round(each, 4)}
        )  # fmt: skip
        say(str(rows[-1]))
    return {"meshes": rows, "paper": {"s_of_100_nodes": 0.5, "s_of_374_nodes": "2 to 3", "s_of_579_nodes": 1.884}}


def _alone(study: Callable[[range, Say], dict[str, Any]]) -> Callable[[range, Say], dict[str, Any]]:
    def run(seeds: range, say: Say) -> dict[str, Any]:
        with one_thread():
            return study(seeds, say)

    run.__doc__ = study.__doc__
    return run


STUDIES: Mapping[str, Callable[[range, Say], dict[str, Any]]] = {
    study.__name__: _alone(study) for study in (dlo, stress, variance, samples, material, fitness, meshes)
}
"""By name: seeds and a place for lines, to JSON-ready figures."""
