from setuptools import find_packages, setup

setup(
    name="softform_ros",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_ros"]),
        ("share/softform_ros", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="What every Softform node shares: QoS profiles, parameter tables, life cycle, message conversions.",
    license="Apache-2.0",
)
