from setuptools import find_packages, setup

setup(
    name="softform_core",
    version="0.1.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_core"]),
        ("share/softform_core", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={  # "test": by this `colcon test` knows what runs the tests
        "test": ["pytest"],
        "parquet": ["pyarrow"],
        "mkl": ["pypardiso"],  # pinned in requirements-pardiso.txt
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
        "console_scripts": ["softform = softform_core.cli.main:main"],
        "softform.bodies": [
            "freeform = softform_core.bodies.freeform.description:FreeformBody",
            "membrane = softform_core.bodies.membrane.description:MembraneBody",
            "imported = softform_core.bodies.imported.description:ImportedBody",
            "rod = softform_core.bodies.rod.description:RodBody",
            "solid = softform_core.bodies.solid.description:SolidBody",
            "tendon_rod = softform_core.bodies.tendon_rod.description:TendonRodBody",
            "bellows = softform_core.bodies.bellows.description:BellowsBody",
            "layered = softform_core.bodies.layered.description:LayeredBody",
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
        ],
    },
)
