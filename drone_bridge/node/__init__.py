# SPDX-License-Identifier: Apache-2.0
"""What every node of ours does the same way: run and stop, declare parameters, answer services, limit the log."""
