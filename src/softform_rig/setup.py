from setuptools import find_packages, setup

setup(
    name="softform_rig",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_rig"]),
        ("share/softform_rig", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="The virtual rig: a simulated reality behind emulated devices.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "rig_node = softform_ros.start:main",
        ],
        "softform.emulations": [
            "arms = softform_rig.arm_emulation:EMULATION",
            "dead_man = softform_rig.dead_man_emulation:EMULATION",
            "dynamixel = softform_rig.motor_emulation:EMULATION",
            "pneumatic_board = softform_rig.board_emulation:EMULATION",
        ],
        "softform.commands": [
            "rig = softform_rig.cli_rig:rig",
            "identify-plant = softform_rig.cli_identify_plant:identify_plant",
        ],
    },
)
