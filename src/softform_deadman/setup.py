from setuptools import find_packages, setup

setup(
    name="softform_deadman",
    version="0.2.0",
    packages=find_packages(exclude=["test", "micropython"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_deadman"]),
        ("share/softform_deadman", ["package.xml", "micropython/dead_man.py"]),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="A relay in the supply of pumps and valves that is closed only while a live driver says so.",
    license="Apache-2.0",
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    entry_points={"softform.devices": ["dead_man = softform_deadman.family:FAMILY"]},
)
