# SPDX-License-Identifier: Apache-2.0
"""The simulator_server node."""
