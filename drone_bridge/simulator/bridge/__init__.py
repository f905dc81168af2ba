# SPDX-License-Identifier: Apache-2.0
"""The simulator_bridge node."""
