# SPDX-License-Identifier: Apache-2.0
"""Reports of nodes on /diagnostics."""

import re


def values_of(report):
    """Return the values of a node's report by name. All names are in snake_case, even those not counted yet."""
    values = {pair.key: pair.value for pair in report.status[0].values}
    assert [key for key in values if not re.fullmatch("[a-z][a-z0-9_]*", key)] == []
    return values
