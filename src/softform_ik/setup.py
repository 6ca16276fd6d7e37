from setuptools import find_packages, setup

setup(
    name="softform_ik",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_ik"]),
        ("share/softform_ik", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Inverse kinematics: action server and client.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "inverse_kinematics_node = softform_ros.start:main",
            "motion_planner_node = softform_ros.start:main",
        ],
    },
)
