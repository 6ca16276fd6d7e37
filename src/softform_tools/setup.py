from setuptools import find_packages, setup

setup(
    name="softform_tools",
    version="0.2.0",
    packages=find_packages(exclude=["test"]),
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/softform_tools"]),
        ("share/softform_tools", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},  # by this `colcon test` knows what runs the tests
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Commands about the whole stack: demo, doctor, status, and goals for one that runs.",
    license="Apache-2.0",
    entry_points={
        "softform.commands": [
            "capture = softform_tools.commands.capture:capture",
            "commission = softform_tools.commands.commission:commission",
            "demo = softform_tools.cli_demo:demo",
            "docs = softform_tools.cli_docs:docs",
            "doctor = softform_tools.doctor:doctor",
            "follow = softform_tools.commands.follow:follow",
            "home = softform_tools.commands.home:home",
            "install-service = softform_tools.cli_install_service:install_service",
            "plan = softform_tools.commands.plan:plan",
            "reach = softform_tools.commands.reach:reach",
            "release = softform_tools.commands.stop_reset:release",
            "reset = softform_tools.commands.stop_reset:reset",
            "run = softform_tools.commands.run:run",
            "shape = softform_tools.commands.shape:shape",
            "stop = softform_tools.commands.stop_reset:stop",
            "stream = softform_tools.commands.stream:stream",
            "status = softform_tools.cli_status:status",
        ],
        "softform.bench": ["best-fit = softform_tools.cli_best_fit:best_fit"],
    },
)
