from setuptools import find_packages, setup

setup(
    name="softform_collect",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_collect"]),
        ("share/softform_collect", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="The collector: captured frames for learning, and the command that collects them.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": ["collector_node = softform_ros.start:main"],
        "softform.commands": ["collect = softform_collect.cli_collect:collect"],
    },
)
