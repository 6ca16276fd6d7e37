from setuptools import find_packages, setup

setup(
    name="softform_pneumatics",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_pneumatics"]),
        ("share/softform_pneumatics", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Pneumatic boards as a family of devices of the driver.",
    license="Apache-2.0",
    entry_points={
        "softform.devices": ["pneumatic_board = softform_pneumatics.family:FAMILY"],
        "softform.commands": ["channels = softform_pneumatics.cli_channels:channels"],
    },
)
