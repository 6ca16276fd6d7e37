"""What a release promises: one version, licences, a wheel that asks for what it imports, public names."""

import ast
import importlib
import json
import re
import runpy
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest
import setuptools
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
CORE = SRC / "softform_core"


@pytest.fixture(scope="module")
def setups():
    """What each setup.py tells setuptools."""
    told = {}
    with pytest.MonkeyPatch.context() as patch:
        for path in sorted(SRC.glob("softform_*/setup.py")):
            patch.chdir(path.parent)
            patch.setattr(setuptools, "setup", lambda path=path, **words: told.update({path.parent.name: words}))
            runpy.run_path(str(path))
    return told


def test_every_package_is_of_the_version_of_the_release(setups):
    manifests = sorted(SRC.glob("softform_*/package.xml"))
    versions = {path.parent.name: ElementTree.parse(path).findtext("version") for path in manifests}
    assert len(manifests) == len(list(SRC.glob("softform_*/"))) > 15
    assert set(versions.values()) == {VERSION}, versions
    assert {name: words["version"] for name, words in setups.items()} == dict.fromkeys(setups, VERSION)
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1] == VERSION


@pytest.mark.parametrize(("page", "most"), [("CONTRIBUTING.md", 60), ("SECURITY.md", 40)])
def test_pages_of_the_project_are_short(page, most):
    assert 10 < len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= most


def test_the_changelog_has_sixty_lines_a_release_at_most():
    releases = re.split(r"^(?=## )", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert releases and all(len(release.splitlines()) <= 60 for release in releases)


COPIED_ALONE = [
    ROOT / "softform",
    *(  # JSON has no comments
        path
        for folder in ("examples", "launch", "config")
        for path in sorted((ROOT / folder).rglob("*.*"))
        if path.suffix != ".json"
    ),
    *sorted(SRC.glob("softform_interfaces/*/*.*")),
]


@pytest.mark.parametrize("path", COPIED_ALONE, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_copied_alone_names_its_licence(path):
    if "__pycache__" not in path.parts:
        said = path.read_bytes().decode(errors="replace")  # of a binary STL file, the header
        assert "SPDX-License-Identifier: Apache-2.0" in (said if path.suffix == ".ipynb" else said[:200])


def test_all_else_has_its_licence_from_one_file():
    told = tomllib.loads((ROOT / "REUSE.toml").read_text(encoding="utf-8"))
    assert told["annotations"][0]["path"] == "**"
    for annotation in told["annotations"]:
        licence = annotation["SPDX-License-Identifier"]
        assert (ROOT / "LICENSES" / f"{licence}.txt").is_file(), licence


DISTRIBUTION = {"skfem": "scikit-fem", "yaml": "pyyaml", "mpl_toolkits": "matplotlib"}
IN_AN_EXTRA = {
    **{"open3d": "open3d-cpu", "ompl": "ompl", "fcl": "python-fcl", "gmsh": "gmsh", "ray": "ray"},
    **{"pypardiso": "pypardiso", "ipctk": "ipctk", "warp": "warp-lang"},
}


def imported(folder: Path) -> set[str]:
    """Top-level names of other packages that the files of a folder import."""
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add("tensorboard" if node.module == "torch.utils.tensorboard" else node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"softform_core"}


def test_the_wheel_asks_for_what_it_imports(setups):
    told = setups["softform_core"]
    needed = {re.split(r"[<>=!~\[]", one)[0] for one in told["install_requires"]}
    optional = {re.split(r"[<>=!~\[]", one)[0] for extra in told["extras_require"].values() for one in extra}
    names = imported(CORE / "softform_core")
    assert {DISTRIBUTION.get(name, name) for name in names - IN_AN_EXTRA.keys()} == needed
    assert {IN_AN_EXTRA[name] for name in names & IN_AN_EXTRA.keys()} <= optional


def test_pins_are_within_what_the_wheel_asks_for(setups):
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = {name.lower(): version for name, _, version in (line.partition("==") for line in lines) if version}
    for line in setups["softform_core"]["install_requires"]:
        wish = Requirement(line)
        assert wish.specifier.contains(pins[wish.name]), line


def test_every_node_begins_with_the_start_of_nodes(setups):
    """Its executable lies at `lib/PACKAGE/NODE`, from which `softform_ros.start` knows the module."""
    scripts = {
        package: line.partition(" = ")
        for package, words in setups.items()
        for line in words.get("entry_points", {}).get("console_scripts", ())
        if package != "softform_core"
    }
    assert len(scripts) > 6
    for package, (name, _, what) in scripts.items():
        assert what == "softform_ros.start:main", f"{package}: {name}"
        assert "def main() -> None:" in (SRC / package / package / f"{name}.py").read_text(encoding="utf-8")


REFERENCE = re.findall(
    r"^   (softform_[\w.]+)$", (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8"), re.MULTILINE
)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_modules_of_the_reference_exist(name):
    assert importlib.import_module(name)


FACES = ("softform_client", "softform_core", "softform_actuation")
PUBLIC = sorted(
    ".".join(path.relative_to(SRC / package).with_suffix("").parts).removesuffix(".__init__")
    for package in FACES
    for path in (SRC / package / package).rglob("*.py")
    if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def test_public_names_exist_and_stand_in_one_module_each():
    owners: dict[str, str] = {}
    for module in PUBLIC:
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            assert hasattr(loaded, name), f"{module}.{name}"
            assert name not in owners, f"{name}: {owners[name]} and {module}"
            owners[name] = module


def code_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return "".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "examples").glob("*.py")), *(ROOT / "examples").glob("*.ipynb"), ROOT / "docs" / "client.md"],
    ids=lambda path: path.name,
)
def test_examples_import_public_names_alone(path):
    for node in ast.walk(ast.parse(code_of(path))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("softform_"):
            assert node.module in PUBLIC, node.module
            public = importlib.import_module(node.module).__all__
            assert {alias.name for alias in node.names} <= set(public), node.module
