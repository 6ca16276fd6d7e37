from setuptools import find_packages, setup

setup(
    name="softform_tools",
    version="0.1.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_tools"]),
        ("share/softform_tools", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Commands about the whole stack: demo, doctor, status.",
    license="Apache-2.0",
    entry_points={
        "softform.commands": [
            "demo = softform_tools.cli_demo:demo",
            "doctor = softform_tools.doctor:doctor",
            "status = softform_tools.cli_status:status",
        ],
    },
)
