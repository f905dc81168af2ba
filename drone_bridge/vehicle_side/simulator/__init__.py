# SPDX-License-Identifier: Apache-2.0
"""What a simulator answers and tells its clients, whatever moves in its world."""
