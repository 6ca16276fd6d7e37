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
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_bringup"]),
        ("share/softform_bringup", ["package.xml"]),
        *installed("launch", "config", "models"),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Brings the nodes up in order; installs launch, config and models.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "bringup_manager_node = softform_ros.start:main",
        ],
    },
)
