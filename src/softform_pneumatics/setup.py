from setuptools import find_packages, setup

setup(
    name="softform_pneumatics",
    version="0.1.0",
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
    description="Pneumatic boards, the driver that is safe with air, and its node.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "pneumatics_node = softform_pneumatics.pneumatics_node:main",
        ],
        "softform.commands": ["channels = softform_pneumatics.cli_channels:channels"],
    },
)
