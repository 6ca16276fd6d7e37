from setuptools import find_packages, setup

setup(
    name="softform_shaping",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_shaping"]),
        ("share/softform_shaping", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Two grippers bring a soft object into a target shape.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "object_rig_node = softform_ros.start:main",
            "object_shaper_node = softform_ros.start:main",
        ],
        "softform.bodies": ["two_arms = softform_shaping.arms_body:TwoArmsBody"],
        "softform.bench": ["shaping = softform_shaping.cli_shaping:shaping"],
        "softform.demos.objects": [
            f"{name} = softform_shaping.demo:show"
            for name in ("sponge", "thin_foam", "convoluted_foam", "noodle", "rope")
        ],
    },
)
