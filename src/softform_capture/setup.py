from setuptools import find_packages, setup

setup(
    name="softform_capture",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_capture"]),
        ("share/softform_capture", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={
        "test": ["pytest"],  # by this `colcon test` knows what runs the tests
        "optitrack": ["natnet==0.3.0"],
        "qualisys": ["qtm-rt==3.1.0"],
        "vicon": ["pyvicon-datastream==0.2.4"],  # GPL-3, built from source: only who wants it installs it
    },
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Shape capture: scanner exports from a watched folder, markers of a motion-capture system.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "camera_tracker_node = softform_ros.start:main",
            "motion_capture_node = softform_ros.start:main",
            "scanner_node = softform_ros.start:main",
        ],
        "softform.commands": [
            "calibrate-cameras = softform_capture.cli_calibrate_cameras:calibrate_cameras",
            "print-code = softform_capture.cli_print_code:print_code",
        ],
    },
)
