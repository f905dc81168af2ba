# SPDX-License-Identifier: Apache-2.0
"""The command record and the node recorder: the bag on disk, its writer thread, and the node."""
