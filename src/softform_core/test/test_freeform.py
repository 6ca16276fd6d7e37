"""Solids of free form: what a description may say; where gmsh is installed, their mesh and how they bend."""

import importlib.util
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from softform_core.bodies.freeform.description import Box, Cylinder, FreeformBody
from softform_core.bodies.freeform.simulator import RealFreeform, drawn_reality, outward, real_simulator, simulator
from softform_core.bodies.gmsh_process import started_gmsh
from softform_core.errors import SoftformError
from softform_core.simulation.newton import find_equilibria
from softform_core.surface.patch import Patch

needs_gmsh = pytest.mark.skipif(importlib.util.find_spec("gmsh") is None, reason="gmsh is not installed")

CONE = {"part": "cylinder", "begin": (0, 0, 0), "end": (0, 0, 0.1), "radius": 0.02, "end_radius": 0.012}
LEFT = {"part": "cylinder", "begin": (-0.008, 0, 0.01), "end": (-0.005, 0, 0.09), "radius": 0.004}
RIGHT = {"part": "ellipsoid", "centre": (0.007, 0, 0.05), "radii": (0.004, 0.005, 0.035)}
PLATE = {"part": "box", "begin": (-1, -1, 0.092), "end": (1, 1, 0.2)}


def described(**fields) -> FreeformBody:
    body = {
        "kind": "freeform",
        "shape": [CONE],
        "chambers": [[LEFT], [RIGHT]],
        "rigid": [PLATE],
        "mesh_size": 0.012,
        "density": 1080.0,
        "material": {"law": "neo_hookean", "coefficients": [84e3]},
        "gravity": (0, 0, 0),
    }
    return FreeformBody.model_validate(body | fields)


def test_what_the_description_says_of_its_shape():
    body = described()
    assert body.inputs == ["c1", "c2"]
    assert body.size == pytest.approx(0.1)
    assert body.extent == pytest.approx([0.04, 0.04])
    assert body.patches == {"tube": True}
    assert outward(body) == pytest.approx(np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    left, right = body.outlines()
    assert left.panel == right.panel
    assert (left.shape, left.x, right.width) == ("ellipse", pytest.approx(-0.0065, abs=1e-4), pytest.approx(0.008))
    slanted = Cylinder(part="cylinder", begin=(0, 0, 0), end=(1, 0, 1), radius=0.1)
    assert slanted.bounds == pytest.approx(np.array([[-0.0707, -0.1, -0.0707], [1.0707, 0.1, 1.0707]]), abs=1e-4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shape": []}, "at least one part"),
        ({"chambers": [[LEFT], []]}, "at least one part"),
        ({"chambers": [[LEFT | {"end": (-0.005, 0, 0.1)}]]}, "chamber c1 leaves the body"),
        ({"chambers": [[LEFT], [RIGHT | {"centre": (0.017, 0, 0.05)}]]}, "chamber c2 leaves the body"),
        ({"mesh_size": 0.06}, "too large"),
        ({"mesh_size": 1e-4}, "too small"),
        ({"shape": [CONE | {"end": (0, 0, 0)}]}, "same place"),
        ({"shape": [{"part": "prism"}]}, "part"),
        ({"shape": [CONE | {"begin": (0, 0, 0.005)}]}, "reach down to z = 0"),
        ({"shape": [CONE | {"radius": float("nan")}]}, "radius"),
    ],
)
def test_impossible_descriptions_name_the_field(fields, message):
    with pytest.raises(ValueError, match=message):
        described(**fields)


def test_a_box_needs_a_size():
    with pytest.raises(ValueError, match="must lie below end"):
        Box(part="box", begin=(0, 0, 0), end=(1, 0, 1))


def test_realities_at_random_differ_and_repeat():
    body = described()
    one, other, again = (drawn_reality(body, np.random.default_rng(seed)) for seed in (1, 2, 1))
    assert one == again != other
    assert one.mesh_scale > 1.0


def test_without_gmsh_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "gmsh", None)
    with pytest.raises(SoftformError, match="gmsh") as error:
        simulator(described())
    assert "requirements-gmsh.txt" in str(error.value)


@needs_gmsh
def test_gmsh_leaves_what_a_process_does_on_signals_as_it_was():
    def told():
        lines = Path("/proc/self/status").read_text().splitlines()
        return [line for line in lines if line.startswith(("SigIgn", "SigCgt"))]

    before = signal.signal(signal.SIGTERM, lambda *_: None)  # as a node has one
    try:
        expected = told()
        with started_gmsh():
            assert told() == expected
        assert told() == expected
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def problem():
    return simulator(described())


@pytest.mark.long
@needs_gmsh
def test_the_mesh_has_the_volumes_that_are_described(problem):
    solid = problem.solid
    volumes = problem.pressure.volumes(solid.nodes)
    assert volumes == pytest.approx(
        [np.pi * 0.004**2 * np.hypot(0.003, 0.08), 4.0 / 3.0 * np.pi * 0.004 * 0.005 * 0.035], rel=0.01
    )
    gradients = problem.pressure.gradients(solid.nodes)
    assert np.abs(gradients.sum(axis=1)).max() < 1e-9 * np.abs(gradients).sum()  # closed
    cone = np.pi * 0.1 / 3.0 * (0.02**2 + 0.02 * 0.012 + 0.012**2)
    assert solid.shape_volumes.sum() + volumes.sum() == pytest.approx(cone, rel=2e-3)
    stiff = solid.bulk > 2.0 * solid.bulk.min()
    high = np.where(stiff, 1.0, 0.0) @ solid.shape_volumes.sum(axis=1)
    radius = 0.02 - 0.008 * 0.92
    assert high == pytest.approx(np.pi * 0.008 / 3.0 * (radius**2 + radius * 0.012 + 0.012**2), rel=5e-3)
    assert np.ptp(solid.nodes[solid.is_fixed, 2]) < 1e-12
    assert solid.is_fixed.sum() >= 10


@needs_gmsh
def test_its_surface_is_a_tube_that_looks_outwards(problem):
    body = described()
    points = problem.points(problem.rest[None])[0]
    faces = problem.faces[body.faces_of("tube", points, problem.faces)]
    a, b, c = points[faces].transpose(1, 0, 2)
    outwards = np.einsum("fi,fi->f", np.cross(b - a, c - a), (a + b + c) * [1.0, 1.0, 0.0])
    assert (outwards > 0.0).all()
    mesh = Patch(10, 10, 3, periodic=True).parametrised(points, faces)
    fitted = mesh.patch.evaluate(mesh.fit(points[None]), mesh.patch.samples(400))[0]
    assert np.hypot(*fitted[:, :2].T) == pytest.approx(0.02 - 0.08 * fitted[:, 2], abs=2e-4)


@pytest.mark.long
@needs_gmsh
def test_a_chamber_bends_it_away_and_another_reality_differs(problem):
    pressures = np.array([[40e3, 0.0]])
    found = find_equilibria(problem, pressures)
    assert found.failures == [""]
    at_end = problem.points(problem.rest[None])[0][:, 2] > 0.099
    end = problem.points(found.unknowns)[0][at_end].mean(axis=0)
    moved = end - problem.points(problem.rest[None])[0][at_end].mean(axis=0)
    assert moved[0] > 0.002
    assert abs(moved[1]) < 0.05 * moved[0]
    finer = simulator(described(mesh_size=0.0085))
    found = find_equilibria(finer, pressures)
    at_end = finer.points(finer.rest[None])[0][:, 2] > 0.099
    same = (finer.points(found.unknowns) - finer.points(finer.rest[None]))[0][at_end].mean(axis=0)
    assert moved == pytest.approx(same, abs=0.06 * moved[0])
    real = real_simulator(described(), RealFreeform(mesh_scale=1.1, chamber_shift=[0.0005, 0.0], clamp_stiffness=1e8))
    assert real.pressure.volumes(real.solid.nodes) == pytest.approx(
        problem.pressure.volumes(problem.solid.nodes), rel=0.01
    )
    assert not real.solid.is_fixed.any()


@needs_gmsh
def test_a_pipe_hangs_out_under_its_weight_as_a_beam_does():
    """Timoshenko's deflection of a pipe, whose ends are closed, held at one end, its weight across."""
    length, outer, inner, modulus, nu, load = 0.2, 0.01, 0.006, 50e3, 0.49, 1e-3
    pipe = described(
        shape=[{"part": "cylinder", "begin": (0, 0, 0), "end": (0, 0, length), "radius": outer}],
        chambers=[[{"part": "cylinder", "begin": (0, 0, 1e-3), "end": (0, 0, length - 1e-3), "radius": inner}]],
        rigid=[],
        mesh_size=0.01,
        density=1000.0,
        gravity=(load, 0, 0),
        poisson_ratio=nu,
        material={"law": "neo_hookean", "coefficients": [modulus]},
    )
    problem = simulator(pipe)
    found = find_equilibria(problem, np.zeros((1, 1)))
    assert found.failures == [""]
    at_end = np.abs(problem.points(problem.rest[None])[0][:, 2] - length) < 1e-9
    deflection = (problem.points(found.unknowns) - problem.points(problem.rest[None]))[0][at_end, 0].mean()
    area, inertia = np.pi * (outer**2 - inner**2), np.pi / 4.0 * (outer**4 - inner**4)
    ratio = inner / outer
    # Cowper's coefficient of shear of a pipe.
    flat = (1.0 + ratio**2) ** 2
    shear = 6.0 * (1.0 + nu) * flat / ((7.0 + 6.0 * nu) * flat + (20.0 + 12.0 * nu) * ratio**2)
    young, weight = 2.0 * modulus * (1.0 + nu), 1000.0 * load * area
    exact = weight * length**4 / (8.0 * young * inertia) + weight * length**2 / (2.0 * shear * modulus * area)
    assert deflection == pytest.approx(exact, rel=0.03)


@needs_gmsh
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"chambers": [[LEFT], [RIGHT | {"centre": (-0.003, 0, 0.05)}]]}, "Chambers c1 and c2 overlap"),
        ({"chambers": [[LEFT | {"end": (-0.016, 0, 0.09)}]]}, "Chamber c1 leaves the body"),
        (
            {"shape": [CONE, PLATE | {"begin": (-0.01, -0.01, 0.11), "end": (0.01, 0.01, 0.12)}]},
            "The body is in 2 pieces",
        ),
        (
            {
                "shape": [{"part": "box", "begin": (0, 0, 0), "end": (0.03, 0.03, 0.03)}],
                "chambers": [
                    [{"part": "box", "begin": (0.01, 0.01, 0.01), "end": (x, 0.02, 0.02)}]
                    if x
                    else [{"part": "box", "begin": (0.015, 0.01, 0.01), "end": (0.02, 0.02, 0.02)}]
                    for x in (0.015, 0)
                ],
            },
            "Chamber c1 has no wall",
        ),
        (
            {"shape": [{"part": "ellipsoid", "centre": (0, 0, 0.05), "radii": (0.03, 0.03, 0.05)}]},
            "no base in the plane z = 0",
        ),
    ],
)
def test_what_cannot_be_meshed_says_why(fields, message):
    with pytest.raises(SoftformError, match=message):
        simulator(described(**fields))


@needs_gmsh
def test_a_dome_is_a_sheet_cut_off_at_its_base():
    dome = described(
        shape=[{"part": "ellipsoid", "centre": (0, 0, 0), "radii": (0.03, 0.03, 0.03)}],
        chambers=[[{"part": "ellipsoid", "centre": (0, 0, 0.015), "radii": (0.014, 0.014, 0.008)}]],
        rigid=[],
        surface="sheet",
    )
    assert dome.patches == {"sheet": False}
    assert dome.size == pytest.approx(0.06)
    problem = simulator(dome)
    points = problem.points(problem.rest[None])[0]
    assert np.linalg.norm(points, axis=1) == pytest.approx(0.03, abs=1e-4)
    mesh = Patch(12, 12).parametrised(points, problem.faces)
    fitted = mesh.patch.evaluate(mesh.fit(points[None]), mesh.uv)[0]
    assert np.linalg.norm(fitted, axis=1) == pytest.approx(0.03, abs=1e-3)
    raised = find_equilibria(problem, np.array([[20e3]]))
    assert raised.failures == [""]
    assert problem.points(raised.unknowns)[0, :, 2].max() > 0.031
