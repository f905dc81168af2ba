# SPDX-License-Identifier: Apache-2.0
"""Components of the recorder: the bag on disk, its writer thread, and the node."""
