# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge clean`: remove the shared memory that killed processes have left behind."""

import argparse
import sys
from collections.abc import Sequence

from drone_bridge.ros.shared_memory import SHARED_MEMORY, abandoned, remove_abandoned


def main(argv: Sequence[str] | None = None) -> int:
    """Remove or list the files; returns the exit status, which is 1 when one could not be removed."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge clean",
        description=f"Remove the shared memory of Fast DDS in {SHARED_MEMORY} that no living process owns, those of "
        "other containers included. A process that is killed (SIGKILL) can't do that itself.",
    )
    parser.add_argument("-p", "--dry-run", action="store_true", help="list the files without removing them")
    if parser.parse_args(argv).dry_run:
        print(*abandoned(), sep="\n")
        return 0
    files = total_bytes = 0
    try:
        for _, size_bytes in remove_abandoned():
            files, total_bytes = files + 1, total_bytes + size_bytes
    except OSError as error:
        print(f"drone-bridge clean: {error.filename} can't be removed: {error.strerror}.", file=sys.stderr)
        return 1
    finally:
        print(f"{files} files removed from {SHARED_MEMORY}, {total_bytes / 1e6:.1f} MB.")
    return 0
