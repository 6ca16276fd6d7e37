from setuptools import find_packages, setup

setup(
    name="softform_studies",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    package_data={"softform_studies.foreign": ["tentacle/*"]},
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_studies"]),
        ("share/softform_studies", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"], "people": ["anny"]},  # "test": by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Benchmarks, and the studies behind the papers' figures.",
    license="Apache-2.0",
    entry_points={
        "softform.commands": [
            "bench = softform_studies.cli_bench:bench",
            "figures = softform_studies.cli_figures:figures",
            "histories = softform_studies.cli_histories:histories",
            "study = softform_studies.cli_study:study",
            "picture = softform_studies.cli_picture:picture",
        ],
        "softform.demos": [
            "cable_arm = softform_studies.helix.demo:show",
            "tendon_rod = softform_studies.tendon_robot.demo:show",
        ],
        "softform.training": ["prior = softform_studies.cli_prior:prior"],
        "softform.bench": [
            "simulate = softform_studies.cli_bench:simulate",
            "ik = softform_studies.cli_bench:ik",
            "sim2real = softform_studies.cli_sim_to_real:sim2real",
            "memory = softform_studies.cli_memory:memory",
            "planning = softform_studies.cli_planning:planning",
            "import = softform_studies.cli_bench:import_",
            "console = softform_studies.console.bench_console:console",
            "torsos = softform_studies.cli_bench:torsos",
            "targets = softform_studies.cli_bench:targets",
            "foreign = softform_studies.cli_foreign:foreign",
            "fem = softform_studies.cli_fem:fem",
            "helix = softform_studies.cli_helix:helix",
            "meshes = softform_studies.cli_meshes:meshes",
            "hysteresis = softform_studies.cli_hysteresis:hysteresis",
            "one-move = softform_studies.cli_hysteresis:one_move",
        ],
        "softform.bench.ik": [
            "prediction = softform_studies.ik.ik_prediction:prediction",
            "solver = softform_studies.ik.ik_solver:solver",
            "algorithm2 = softform_studies.ik.ik_algorithm2:algorithm2",
            "scaling = softform_studies.ik.ik_scaling:scaling",
            "bounds = softform_studies.ik.ik_bounds:bounds",
            "streaming = softform_studies.streaming.bench_streaming:streaming",
            "waypoints = softform_studies.waypoints.bench_waypoints:waypoints",
        ],
    },
)
