# SPDX-License-Identifier: Apache-2.0
"""Compiler of testbed_baseline.c for this environment's ROS."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

from ament_index_python.packages import get_package_prefix

COMPILER = shutil.which("gcc")
SOURCE = Path(__file__).with_name("testbed_baseline.c")
LIBRARIES = (
    *("rcl", "rcutils", "rosidl_runtime_c"),
    *("sensor_msgs__rosidl_typesupport_c", "sensor_msgs__rosidl_generator_c"),
    f"python{sysconfig.get_config_var('LDVERSION')}",  # the wheels' rcl needs Python's symbols
)


def compiled_baseline(folder: Path) -> str:
    """Compile it in a folder; return the path of the program."""
    prefix, python = Path(get_package_prefix("rcl")), sysconfig.get_config_var("LIBDIR")
    program = str(folder / SOURCE.stem)
    headers = [f"-I{path}" for path in prefix.glob("include/*")]
    link = [f"-L{prefix}/lib", f"-L{python}", f"-Wl,--no-as-needed,--allow-shlib-undefined,-rpath,{python}"]
    command = [COMPILER or "gcc", "-O2", str(SOURCE), "-o", program, *headers, *link]
    subprocess.run([*command, *(f"-l{library}" for library in LIBRARIES)], check=True)
    return program
