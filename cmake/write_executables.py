# SPDX-License-Identifier: Apache-2.0
"""Write one start script per executable in setup.cfg: python3 write_executables.py SETUP_CFG DIRECTORY.

CMake installs them beside a ROS whose environment was sourced. Wheels bring ROS into a virtual environment: for these,
main(..., is_relative=True) writes scripts that find what belongs to them by where they are.
"""

import configparser
import shutil
import sys
from pathlib import Path

#: pip rewrites no first line of what is below lib. The libraries of the wheels come before any others: the bootstrapper
#: of the ROS wheels, which does the same in a second start of Python, leaves the order to chance. The shell starts no
#: other program: dash unblocks all signals when it waits for one, and Ctrl-Z of a launch would suspend its nodes.
RELATIVE_START = """\
#!/bin/sh
''':'
prefix=$(cd -- "${0%/*}/../.." && pwd)
libraries=$prefix/lib
for folder in "$prefix"/lib/python3.*/site-packages/ros_*.libs; do libraries=$libraries:$folder; done
case "${LD_LIBRARY_PATH:-}" in
"$libraries"*) ;;
*) LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
esac
export LD_LIBRARY_PATH _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
exec "$prefix/bin/python3" "$0" "$@"
'''
"""

SCRIPT = """\
# Written from setup.cfg when the package was built.
import gc
import signal
import sys

# Modules stay. To search them for garbage takes a twentieth of a bridge's start, and later 10 ms each time.
gc.disable()
# Imports take a moment, and whoever presses Ctrl-C meanwhile is not interested in where they have got to.
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # as drone-bridge launch starts it
try:
    from drone_bridge.standard_files import open_closed_files

    open_closed_files()  # before any socket or file gets the number of one of them
{first}    from {module} import {function}

    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit({function}())
except KeyboardInterrupt:  # before the program handles it
    sys.exit(128 + signal.SIGINT)
except ModuleNotFoundError as error:
    from drone_bridge.programs.missing_package import explain_missing

    print(explain_missing("{name}", error), file=sys.stderr)
    sys.exit(2)  # as after refused settings: it can't start
"""

#: The section of setup.cfg with the executables that need ROS.
NODES = "drone_bridge.nodes"
#: What these import before anything else. CPython 3.11 and later keep the frames of Python calls in chunks of 16 KiB: a
#: call that does not fit into the chunk maps another one, and its return unmaps that. What rclpy imports, NumPy above
#: all, does so thousands of times in a row if the import begins at an unlucky depth of the stack. Here it does not.
IMPORT_FIRST = """\
    from drone_bridge.ros.process.environment import complete_environment

    complete_environment()  # or say which other ROS is in the way
    import rclpy.node  # first, as modules that import it may take 0.1 s longer: see cmake/write_executables.py

"""


def main(setup_cfg: Path, directory: Path, *, is_relative: bool = False) -> None:
    """Replace what DIRECTORY holds, so that a renamed executable leaves nothing behind."""
    config = configparser.ConfigParser()
    config.read_string(setup_cfg.read_text())
    start = RELATIVE_START if is_relative else f"#!{sys.executable}\n"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for section, executables in config["options.entry_points"].items():
        first = IMPORT_FIRST if section == NODES else ""
        for line in executables.strip().splitlines():
            name, target = (part.strip() for part in line.split("="))
            module, function = target.split(":")
            script = directory / name
            script.write_text(start + SCRIPT.format(name=name, first=first, module=module, function=function))
            script.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
