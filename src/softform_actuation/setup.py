from setuptools import find_packages, setup

setup(
    name="softform_actuation",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_actuation"]),
        ("share/softform_actuation", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="The driver core: one commander at a time, deadlines, latch and guardian; its node.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": ["actuation_node = softform_ros.start:main"],
        "softform.robot_checks": ["devices = softform_actuation.assembly:check_devices"],
    },
)
