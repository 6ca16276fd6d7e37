from pathlib import Path

from setuptools import find_packages, setup

PAGE = [path for path in Path("dist").rglob("*") if path.is_file()]

setup(
    name="softform_console",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_console"]),
        ("share/softform_console", ["package.xml"]),
        *((f"share/softform_console/{path.parent}", [str(path)]) for path in PAGE),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="The operator's page and its server.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "console_node = softform_ros.start:main",
        ],
    },
)
