from setuptools import find_packages, setup

setup(
    name="softform_launch",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_launch"]),
        ("share/softform_launch", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Runs launch files on machines without `ros2 launch`.",
    license="Apache-2.0",
    entry_points={
        "softform.commands": ["launch = softform_launch.cli_launch:launch"],
    },
)
