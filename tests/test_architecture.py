"""Imports point one way, between packages and between the folders of each; package.xml names what is imported."""

import ast
import graphlib
import sys
import tomllib
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from mypy import api

SRC = Path(__file__).parents[1] / "src"
BELOW_NODES = {"softform_core", "softform_interfaces", "softform_ros", "softform_client", "softform_launch"}
ALLOWED = {
    "softform_core": set(),
    "softform_ros": {"softform_core", "softform_interfaces"},
    "softform_client": {"softform_core", "softform_interfaces", "softform_ros"},
    "softform_launch": {"softform_core"},
    **dict.fromkeys(
        (
            *("softform_actuation", "softform_bringup", "softform_capture", "softform_collect", "softform_console"),
            *("softform_ik", "softform_inference", "softform_recording", "softform_rig"),
        ),
        BELOW_NODES,
    ),
    # Families of devices.
    "softform_arms": BELOW_NODES | {"softform_actuation"},
    "softform_deadman": BELOW_NODES | {"softform_actuation"},
    "softform_pneumatics": BELOW_NODES | {"softform_actuation"},
    "softform_tendons": BELOW_NODES | {"softform_actuation"},
    "softform_shaping": BELOW_NODES,
    # Above the nodes: what starts, watches and judges them.
    "softform_tools": BELOW_NODES | {"softform_actuation", "softform_recording", "softform_rig"},
    "softform_studies": BELOW_NODES | {"softform_rig", "softform_ik"},
    "softform_system_tests": BELOW_NODES
    | {"softform_actuation", "softform_bringup", "softform_capture", "softform_pneumatics", "softform_recording"}
    | {"softform_ik", "softform_rig"}
    | {"softform_studies", "softform_tendons"},
}
"""What a package may import besides itself. No node package knows another."""

ROS = {"rclpy", "std_msgs", "sensor_msgs", "geometry_msgs", "diagnostic_msgs", "lifecycle_msgs", "std_srvs"}
PYTHON_PACKAGES = sorted(path.parent.name for path in SRC.glob("softform_*/setup.py"))

DEPENDENCY_OF = {
    "jeepney": "python3-jeepney-pip",
    **{name: f"python3-{name}" for name in ("click", "jinja2", "matplotlib", "numpy", "psutil", "scipy")},
    **{name: f"python3-{name}" for name in ("hypothesis", "pytest", "serial", "tqdm", "yaml")},
    **{
        name: f"python3-{name}-pip" for name in ("fcl", "natnet", "numba", "ompl", "pydantic", "rosbags", "tensorboard")
    },
    **{
        name: f"python3-{name}-pip"
        for name in (
            "cryptography",
            "starlette",
            "uvicorn",
            "websockets",
            "meshio",
            "open3d",
            "pymetis",
            "threadpoolctl",
            "torch",
            "trimesh",
            "zarr",
        )
    },
    **{"PIL": "python3-pil", "cv2": "python3-opencv", "mpl_toolkits": "python3-matplotlib"},
    **{"tf2_ros": "tf2_ros_py", "qtm_rt": "python3-qtm-rt-pip", "skfem": "python3-scikit-fem-pip"},
    "dynamixel_sdk": "python3-dynamixel-sdk-pip",
}
"""The key in package.xml of an imported module; that of a ROS package is its name."""

OPTIONAL = {
    "anny",
    "atheris",
    "coverage",
    "felupe",
    "foxglove",
    "gmsh",
    "ipctk",
    "mutmut",
    "pypardiso",
    "pyvicon_datastream",
    "mocap4r2_msgs",
    "playwright",
    "ray",
    "segno",
    "warp",
}
"""Imported only where somebody installed them."""


@cache
def imported_modules(path: Path) -> frozenset[str]:
    """Dotted names that a file imports; of `from a import b`, both `a` and `a.b`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def imported_packages(package: str, folder: str = "") -> dict[str, set[str]]:
    """Top-level names that each file below a package's folder imports; by default its code's."""
    paths = (SRC / package / (folder or package)).rglob("*.py")
    return {str(path.relative_to(SRC)): {name.split(".")[0] for name in imported_modules(path)} for path in paths}


@pytest.mark.parametrize("package", PYTHON_PACKAGES)
def test_a_package_imports_only_what_lies_below_it(package):
    files = imported_packages(package)
    assert files
    for path, names in files.items():
        beyond = {name for name in names if name.startswith("softform_")} - ALLOWED[package] - {package}
        assert not beyond, f"{path} imports {beyond}"
        if package == "softform_core":
            assert not names & ROS, f"{path} imports ROS"


def test_the_packages_are_those_of_the_design():
    assert set(PYTHON_PACKAGES) == set(ALLOWED)


def test_types_are_checked_across_packages(tmp_path, monkeypatch):
    """With the settings of `./softform test`: a package that mypy does not find is Any, and no use of it is wrong."""
    monkeypatch.chdir(SRC.parent)
    settings = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["mypy_path"] == [f"src/{package}" for package in PYTHON_PACKAGES]
    misuse = tmp_path / "misuse.py"
    misuse.write_text("from softform_core.errors import SoftformError\n\nSoftformError(1)\n")
    limit = sys.getrecursionlimit()
    found, errors, status = api.run(["--cache-dir", str(tmp_path / "cache"), str(misuse)])
    sys.setrecursionlimit(limit)  # mypy raises it, and tests that come after would not meet it
    assert status == 1 and 'incompatible type "int"; expected "str"' in found, found + errors


def _folder_of(module: str) -> str | None:
    """The folder, dotted, in which a module of ours lies; None if it is none."""
    parts = module.split(".")
    place = SRC / parts[0] / Path(*parts)
    if place.with_suffix(".py").is_file():
        return ".".join(parts[:-1])
    return module if (place / "__init__.py").is_file() else None


def _imported_folders(path: Path) -> set[str]:
    """Folders in which the modules that a file imports lie."""
    modules = {name for name in imported_modules(path) if _folder_of(name)}
    # `from a.b import c` names `a.b` too: where `c` is a module, `a.b` is only the way to it.
    ways = {name.rpartition(".")[0] for name in modules}
    return {_folder_of(name) or "" for name in modules if name not in ways}


def test_no_folders_import_each_other_in_a_circle():
    graph: dict[str, set[str]] = {}
    for package in PYTHON_PACKAGES:
        for path in (SRC / package / package).rglob("*.py"):
            folder = ".".join(path.relative_to(SRC / package).parent.parts)
            graph.setdefault(folder, set()).update(_imported_folders(path) - {folder})
    assert sum(map(len, graph.values())) > 100
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError


KNOWN_CIRCLES = {
    frozenset({"softform_core.cli.environment", "softform_core.cli.main"}),  # the shell's completion names them all
    frozenset({"softform_rig.draw_reality", "softform_rig.reality"}),  # `drawn:SEED` is the name of a reality
}
"""Files that import each other, to be parted; no others may."""


def test_no_files_import_each_other_in_a_circle():
    """Imports within functions count: what needs another file to run cannot be understood without it."""
    files = {
        ".".join(path.relative_to(SRC / package).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PYTHON_PACKAGES
        for path in (SRC / package / package).rglob("*.py")
    }
    graph = {name: imported_modules(path) & files.keys() - {name} for name, path in files.items()}
    # `from a.b import c` names `a.b`, too: where `c` is a module, `a.b` is only the way to it.
    for name, imported in graph.items():
        graph[name] = imported - {each.rpartition(".")[0] for each in imported}
    found = set()
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            circle = error.args[1]
            found.add(frozenset(circle))
            graph[circle[1]] = graph[circle[1]] - {circle[0]}
        else:
            break
    assert found == KNOWN_CIRCLES


def _dependencies(package: str) -> dict[str, set[str]]:
    root = ElementTree.parse(SRC / package / "package.xml").getroot()
    return {kind: {one.text for one in root.iter(f"{kind}_depend")} for kind in ("exec", "test")}


@pytest.mark.parametrize("package", PYTHON_PACKAGES)
def test_package_xml_names_what_is_imported(package):
    """So `rosdep install` and `colcon build` prepare a machine with ROS."""
    beside = {path.stem for path in (SRC / package / "test").rglob("*.py")}
    needed = {}
    for kind, folder in (("exec", package), ("test", "test")):
        names = set().union(*imported_packages(package, folder).values())
        others = names - sys.stdlib_module_names - OPTIONAL - {package} - (beside if kind == "test" else set())
        needed[kind] = {DEPENDENCY_OF.get(name, name) for name in others}
    named = _dependencies(package)
    assert needed["exec"] <= named["exec"], f"package.xml lacks {needed['exec'] - named['exec']}"
    untold = needed["test"] - named["exec"] - named["test"]
    assert not untold, f"package.xml lacks test_depend of {untold}"
    idle = {key for key in named["exec"] | named["test"] if not key.startswith("softform_")}
    assert idle <= needed["exec"] | needed["test"], f"nothing imports {idle - needed['exec'] - needed['test']}"


@pytest.mark.parametrize("package", PYTHON_PACKAGES)
def test_colcon_test_runs_the_tests_of_each_package(package):
    """Without an extra `test` that names pytest it runs unittest, which finds nothing and is content."""
    assert '"test": ["pytest"]' in (SRC / package / "setup.py").read_text(encoding="utf-8")


def test_rosdep_knows_every_key_that_only_pypi_has():
    rules = yaml.safe_load((SRC.parent / "rosdep.yaml").read_text(encoding="utf-8"))
    named = set().union(*(keys for package in PYTHON_PACKAGES for keys in _dependencies(package).values()))
    assert {key for key in named if key.endswith("-pip")} == set(rules)


def test_bringup_depends_on_every_package_whose_nodes_are_launched():
    launched = {
        node.get("pkg")
        for path in (SRC.parent / "launch").glob("*.launch.xml")
        for node in ElementTree.parse(path).getroot().iter("node")
    }
    assert launched and launched - {"softform_bringup"} <= _dependencies("softform_bringup")["exec"]


def test_bringup_stays_small():
    lines = sum(len(path.read_text().splitlines()) for path in (SRC / "softform_bringup").rglob("*.py"))
    assert lines < 1100


def test_no_timer_follows_the_time_of_day():
    """rclpy's do, unless they are told otherwise: set back by an hour, they are not called for an hour."""
    for path in SRC.glob("softform_*/softform_*/**/*.py"):
        if path.name not in ("timers.py", "guarded_node.py"):  # which wraps what it is given
            assert ".create_timer(" not in path.read_text(encoding="utf-8"), path


A_BODY_ITSELF = {
    SRC / "softform_studies/softform_studies/foreign/tentacle_rod.py",
    SRC / "softform_studies/softform_studies/meshes/bench.py",
}
"""Physics of a body outside `bodies`, one that no robot's description has; and what tries files of one kind."""


def test_only_a_body_knows_its_kind():
    """What is outside `bodies`, and no body itself, reaches a kind through `Body` and `SimulatedBody` alone."""
    bodies = SRC / "softform_core/softform_core/bodies"
    kinds = {f"softform_core.bodies.{path.parent.name}" for path in bodies.glob("*/__init__.py")}
    assert len(kinds) >= 2
    for path in SRC.glob("softform_*/softform_*/**/*.py"):
        if not path.is_relative_to(bodies) and path not in A_BODY_ITSELF:
            known = {name for name in imported_modules(path) if ".".join(name.split(".")[:3]) in kinds}
            assert not known, f"{path} imports {known}"


def test_the_rig_and_the_driver_share_no_protocol_code():
    imported = set().union(*imported_packages("softform_rig").values())
    families = {"softform_arms", "softform_deadman", "softform_pneumatics", "softform_tendons"}
    assert not imported & (families | {"softform_actuation"})
