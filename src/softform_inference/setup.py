from setuptools import find_packages, setup

setup(
    name="softform_inference",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_inference"]),
        ("share/softform_inference", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Shape prediction from measured values.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "shape_predictor_node = softform_ros.start:main",
        ],
    },
)
