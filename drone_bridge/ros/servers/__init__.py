# SPDX-License-Identifier: Apache-2.0
"""What only servers use: the vehicle's topics, its bridge, and an operator's commands."""
