# SPDX-License-Identifier: Apache-2.0
"""Protocol sessions and their common parts: pure state machines, with the time as an input."""
