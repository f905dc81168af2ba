# SPDX-License-Identifier: Apache-2.0
"""ROS 2 bridges for legacy robot protocols."""

from pkgutil import extend_path

# The generated drone_bridge.msg exists only in the installed package; with this it is found as well by a
# Python that was started in the source tree and therefore imports the sources first.
__path__ = extend_path(__path__, __name__)
