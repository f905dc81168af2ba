# SPDX-License-Identifier: Apache-2.0
"""Write one start script per executable in setup.cfg: python3 write_executables.py SETUP_CFG DIRECTORY."""

import configparser
import shutil
import sys
from pathlib import Path

SCRIPT = """\
#!{python}
# Written from setup.cfg when the package was built.
import gc
import signal
import sys

# Modules stay. To search them for garbage takes a twentieth of a bridge's start, and later 10 ms each time.
gc.disable()
# Imports take a moment, and whoever presses Ctrl-C meanwhile is not interested in where they have got to.
signal.signal(signal.SIGINT, signal.SIG_DFL)
try:
{first}    from {module} import {function}

    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit({function}())
except ModuleNotFoundError as error:
    from drone_bridge.programs.missing_package import explain_missing

    sys.exit(explain_missing("{name}", error))
"""

#: The section of setup.cfg with the executables that need ROS.
NODES = "drone_bridge.nodes"
#: What these import before anything else. CPython 3.11 and later keep the frames of Python calls in chunks of 16 KiB: a
#: call that does not fit into the chunk maps another one, and its return unmaps that. What rclpy imports, NumPy above
#: all, does so thousands of times in a row if the import begins at an unlucky depth of the stack. Here it does not.
IMPORT_FIRST = """\
    import rclpy.node  # first, as modules that import it may take 0.1 s longer: see cmake/write_executables.py

"""


def main(setup_cfg: Path, directory: Path) -> None:
    """Replace what DIRECTORY holds, so that a renamed executable leaves nothing behind."""
    config = configparser.ConfigParser()
    config.read_string(setup_cfg.read_text())
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for section, executables in config["options.entry_points"].items():
        first = IMPORT_FIRST if section == NODES else ""
        for line in executables.strip().splitlines():
            name, target = (part.strip() for part in line.split("="))
            module, function = target.split(":")
            script = directory / name
            script.write_text(
                SCRIPT.format(name=name, python=sys.executable, first=first, module=module, function=function)
            )
            script.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
