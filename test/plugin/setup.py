# SPDX-License-Identifier: Apache-2.0
"""An ament_python package; pip takes it as well."""

from glob import glob

from setuptools import setup

NAME = "kestrel_bridge"

setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*")),
        (f"lib/{NAME}", glob("bin/*")),
    ],
    entry_points={"drone_bridge.protocols": ["kestrel = kestrel_bridge:KIND"]},
)
