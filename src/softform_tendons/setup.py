from setuptools import find_packages, setup

setup(
    name="softform_tendons",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_tendons"]),
        ("share/softform_tendons", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Buses of motors that pull tendons.",
    license="Apache-2.0",
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    entry_points={"softform.devices": ["dynamixel = softform_tendons.family:FAMILY"]},
)
