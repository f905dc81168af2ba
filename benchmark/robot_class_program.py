# SPDX-License-Identifier: Apache-2.0
"""Run a program of examples/pioneer, which need not be installed: robot_class_program.py bridge|emulator."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "pioneer"))
from pioneer import Pioneer


def main() -> int:
    """Run the program that the command line names first."""
    _, program, *arguments = sys.argv
    if program == "emulator":
        return int(Pioneer.parts.emulate(arguments))
    from drone_bridge.ros.program import run

    del sys.argv[1]
    return run(Pioneer.parts.bridge)


if __name__ == "__main__":
    sys.exit(main())
