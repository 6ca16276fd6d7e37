from glob import glob
from os.path import dirname, isfile, join, relpath

from setuptools import find_packages, setup

WORKSPACE = join("..", "..")


def installed(*folders: str) -> list[tuple[str, list[str]]]:
    """List (share directory, files) for every file below the workspace's folders."""
    files = [f for folder in folders for f in glob(join(WORKSPACE, folder, "**", "*"), recursive=True) if isfile(f)]
    places = sorted({dirname(f) for f in files})
    return [
        (join("share/softform_bringup", relpath(p, WORKSPACE)), [f for f in files if dirname(f) == p]) for p in places
    ]


setup(
    name="softform_bringup",
    version="0.1.0",
    packages=find_packages(exclude=["test"]),
    package_data={"softform_bringup.fault_injection": ["*.c"]},
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_bringup"]),
        ("share/softform_bringup", ["package.xml"]),
        *installed("launch", "config", "models"),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Starts, orders, records and demonstrates the stack; installs launch, config and models.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "bringup_manager_node = softform_bringup.bringup_manager_node:main",
            "collector_node = softform_bringup.collector_node:main",
            "bag_recorder_node = softform_bringup.bag_recorder_node:main",
        ],
        "softform.commands": [
            "launch = softform_bringup.cli_launch:launch",
            "doctor = softform_bringup.doctor:doctor",
            "record = softform_bringup.cli_record:record",
            "replay = softform_bringup.cli_replay:replay",
            "status = softform_bringup.cli_status:status",
            "demo = softform_bringup.cli_demo:demo",
            "collect = softform_bringup.cli_collect:collect",
        ],
        "softform.bench": [
            "rig = softform_bringup.fault_injection.cli_bench_rig:rig",
            "soak = softform_bringup.soak.cli_bench_soak:soak",
            "fuzz = softform_bringup.fuzzing.cli_bench_fuzz:fuzz",
        ],
        "softform.bench.ik": ["streaming = softform_bringup.bench_streaming:streaming"],
    },
)
