# SPDX-License-Identifier: Apache-2.0
"""The testbed's side of the protocol and its model of motion, for any drone."""
