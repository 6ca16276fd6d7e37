import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

_CONFIG = Path(__file__).resolve().parents[2] / "config"


class BuildWithDescriptions(build_py):
    """Puts the descriptions that ship beside the code: a wheel has no checkout around it (`softform_core.paths`).

    With them goes what they name, such as meshes of bodies.
    """

    def run(self) -> None:
        """Build, then copy robots, realities and the plant; not where this package lies alone."""
        super().run()
        shipped = Path(self.build_lib) / "softform_core" / "shipped" / "config"
        for part in ("robots", "realities", "plant.yaml") if _CONFIG.is_dir() and not self.editable_mode else ():
            for file in (
                [_CONFIG / part] if part.endswith(".yaml") else filter(Path.is_file, (_CONFIG / part).rglob("*"))
            ):
                copy = shipped / file.relative_to(_CONFIG)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)


setup(
    name="softform_core",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    package_data={"softform_core.evaluation": ["report.html"]},
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_core"]),
        ("share/softform_core", ["package.xml"]),
    ],
    cmdclass={"build_py": BuildWithDescriptions},
    python_requires=">=3.11",
    install_requires=[  # requirements.in names what the whole workspace needs, requirements.txt pins it
        "click>=8.1",
        "jinja2>=3.1",
        "matplotlib>=3.8",
        "numba>=0.61",
        "numpy>=2.0",
        "pydantic>=2.7",
        "pymetis>=2023.1",
        "pyyaml>=6.0",
        "scikit-fem>=10.0",
        "scipy>=1.14",
        "tensorboard>=2.16",
        "threadpoolctl>=3.5",
        "torch>=2.4",
        "tqdm>=4.66",
        "zarr>=3.0.8,<4",
    ],
    extras_require={  # "test": by this `colcon test` knows what runs the tests
        "test": ["pytest"],
        "scans": ["open3d-cpu"],  # normals of clouds; pinned in requirements-no-deps.txt
        "planning": ["ompl>=2.0", "python-fcl>=0.7"],  # motions clear of obstacles
        "parquet": ["pyarrow"],
        "mkl": ["pypardiso"],  # pinned in requirements-pardiso.txt
        "contact": ["ipctk"],  # pinned in requirements-ipctk.txt
        "gmsh": ["gmsh"],  # pinned in requirements-gmsh.txt
        "warp": ["warp-lang"],  # pinned in requirements-warp.txt
        "ray": ["ray"],  # pinned in requirements-ray.txt: all nodes of a cluster need the same version
    },
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Softform without ROS: robots, simulation, surfaces, networks, kinematics and their command line.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": ["softform = softform_core.cli.main:start"],
        "softform.bodies": [
            "cable_arm = softform_core.bodies.cable_arm.description:CableArmBody",
            "freeform = softform_core.bodies.freeform.description:FreeformBody",
            "mesh = softform_core.bodies.mesh.description:MeshBody",
            "membrane = softform_core.bodies.membrane.description:MembraneBody",
            "imported = softform_core.bodies.imported.description:ImportedBody",
            "rod = softform_core.bodies.rod.description:RodBody",
            "solid = softform_core.bodies.solid.description:SolidBody",
            "tendon_rod = softform_core.bodies.tendon_rod.description:TendonRodBody",
            "bellows = softform_core.bodies.bellows.description:BellowsBody",
            "layered = softform_core.bodies.layered.description:LayeredBody",
        ],
        "softform.models": [
            "learned = softform_core.forward.live_pipeline:learned",
            "fem = softform_core.forward.simulated_models:fem",
        ],
        "softform.imports": [
            "tips = softform_core.cli.import_:tips",
            "shapes = softform_core.cli.import_:shapes",
            "frames = softform_core.cli.import_:frames",
        ],
        "softform.training": ["fk = softform_core.cli.train:fk", "s2r = softform_core.cli.train:s2r"],
        "softform.commands": [
            "python = softform_core.cli.environment:python",
            "shell = softform_core.cli.environment:shell",
            "completion = softform_core.cli.environment:completion",
            "build = softform_core.cli.environment:build",
            "test = softform_core.cli.environment:test",
            "simulate = softform_core.cli.simulate:simulate",
            "import = softform_core.cli.import_:import_",
            "register = softform_core.cli.register:register",
            "train = softform_core.cli.train:train",
            "refresh = softform_core.cli.refresh:refresh",
            "evaluate = softform_core.cli.evaluate:evaluate",
            "robot = softform_core.cli.robot:robot",
            "skin = softform_core.cli.skin:skin",
        ],
    },
)
