from setuptools import find_packages, setup

setup(
    name="softform_client",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_client"]),
        ("share/softform_client", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="What planners, controllers and notebooks import: goals, streams and measurements of a running robot.",
    license="Apache-2.0",
)
