from setuptools import find_packages, setup

setup(
    name="softform_recording",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_recording"]),
        ("share/softform_recording", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Bags: recorder, replay and salvage.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": ["bag_recorder_node = softform_ros.start:main"],
        "softform.imports": ["bag = softform_recording.cli_import_bag:bag"],
        "softform.commands": [
            "record = softform_recording.cli_record:record",
            "replay = softform_recording.cli_replay:replay",
        ],
    },
)
