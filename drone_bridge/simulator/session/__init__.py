# SPDX-License-Identifier: Apache-2.0
"""State machines of the simulator's protocol, for its clients and the simulator. Pure, with time as an argument."""
