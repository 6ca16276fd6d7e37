from setuptools import setup

setup(
    name="tf_transformations",
    version="1.1.0",
    packages=["tf_transformations"],
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/tf_transformations"]),
        ("share/tf_transformations", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="Softform maintainers",
    maintainer_email="softform@users.noreply.example",
    description="Functions of ROS's tf_transformations that Softform uses, over transforms3d as there.",
    license="Apache-2.0",
)
