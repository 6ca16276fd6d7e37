from setuptools import find_packages, setup

setup(
    name="softform_arms",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_arms"]),
        ("share/softform_arms", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Arms that hold an object, as a device of the driver.",
    license="Apache-2.0",
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    entry_points={"softform.devices": ["arms = softform_arms.family:FAMILY"]},
)
