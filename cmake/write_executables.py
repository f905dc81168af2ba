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
    from {module} import {function}

    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit({function}())
except ModuleNotFoundError as error:
    from drone_bridge.missing_package import explain_missing

    sys.exit(explain_missing("{name}", error))
"""


def main(setup_cfg: Path, directory: Path) -> None:
    """Replace what DIRECTORY holds, so that a renamed executable leaves nothing behind."""
    config = configparser.ConfigParser()
    config.read_string(setup_cfg.read_text())
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for line in "".join(config["options.entry_points"].values()).strip().splitlines():
        name, target = (part.strip() for part in line.split("="))
        module, function = target.split(":")
        script = directory / name
        script.write_text(SCRIPT.format(name=name, python=sys.executable, module=module, function=function))
        script.chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
