from setuptools import find_packages, setup

setup(
    name="softform_system_tests",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    package_data={"softform_system_tests.fault_injection": ["*.c"]},
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_system_tests"]),
        ("share/softform_system_tests", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Tests of the whole stack under faults: fault injection, soak, fuzzing.",
    license="Apache-2.0",
    entry_points={
        "softform.bench": [
            "rig = softform_system_tests.fault_injection.cli_bench_rig:rig",
            "schedules = softform_system_tests.schedules.cli_bench_schedules:schedules",
            "soak = softform_system_tests.soak.cli_bench_soak:soak",
            "fuzz = softform_system_tests.fuzzing.cli_bench_fuzz:fuzz",
            "mutation = softform_system_tests.mutation.cli_bench_mutation:mutation",
        ],
        "softform.fuzz": [
            "messages = softform_system_tests.fuzz_targets.messages:fuzz_messages",
            "requests = softform_system_tests.fuzz_targets.messages:fuzz_requests",
            "natnet = softform_system_tests.fuzz_targets.motion_capture:fuzz_natnet",
            "qualisys_settings = softform_system_tests.fuzz_targets.motion_capture:fuzz_qualisys_settings",
            "qualisys_stream = softform_system_tests.fuzz_targets.motion_capture:fuzz_qualisys_stream",
            "scan_cloud = softform_system_tests.fuzz_targets.scans:fuzz_cloud",
            "scan_image = softform_system_tests.fuzz_targets.scans:fuzz_image",
            "scan_obj = softform_system_tests.fuzz_targets.scans:fuzz_obj",
            "scan_ply = softform_system_tests.fuzz_targets.scans:fuzz_ply",
            "scan_stl = softform_system_tests.fuzz_targets.scans:fuzz_stl",
            "scan_pcd = softform_system_tests.fuzz_targets.scans:fuzz_pcd",
            "scan_xyz = softform_system_tests.fuzz_targets.scans:fuzz_xyz",
            "protocol_a = softform_system_tests.fuzz_targets.boards:fuzz_protocol_a",
            "protocol_b = softform_system_tests.fuzz_targets.boards:fuzz_protocol_b",
            "protocol_binary = softform_system_tests.fuzz_targets.boards:fuzz_protocol_binary",
        ],
    },
)
