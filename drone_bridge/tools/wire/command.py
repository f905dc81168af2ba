# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire: inspect and replay wire logs. See docs/wire_log.md."""

import argparse
import sys
from collections.abc import Sequence

from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.wire import importing, play, show
from drone_bridge.tools.wire.conversation import WireError


def main(argv: Sequence[str]) -> int:
    """Run one of the commands; return the exit status."""
    parser = argparse.ArgumentParser(prog="drone-bridge wire", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for module in (show, play, importing):
        module.add_parser(commands)
    options = parser.parse_args(argv)
    try:
        status: int = options.run(options)
    except WireError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"{error.filename or options}: {error.strerror or error}.", file=sys.stderr)
        return REFUSED
    return status
