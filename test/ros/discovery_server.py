# SPDX-License-Identifier: Apache-2.0
"""Discovery server of Fast DDS on 127.0.0.1, from a profile: discovery_server.py PORT."""

import contextlib
import os
import sys
import tempfile

from drone_bridge.ros.process import environment

PROFILE = """
<dds xmlns="http://www.eprosima.com">
  <profiles>
    <participant profile_name="server" is_default_profile="true">
      <rtps>
        <prefix>44.53.00.5f.45.50.52.4f.53.49.4d.41</prefix>
        <builtin>
          <discovery_config>
            <discoveryProtocol>SERVER</discoveryProtocol>
          </discovery_config>
          <metatrafficUnicastLocatorList>
            <locator>
              <udpv4>
                <address>127.0.0.1</address>
                <port>{port}</port>
              </udpv4>
            </locator>
          </metatrafficUnicastLocatorList>
        </builtin>
      </rtps>
    </participant>
  </profiles>
</dds>
"""


def main():
    import rclpy
    from rclpy.executors import ExternalShutdownException

    with tempfile.NamedTemporaryFile("w", suffix=".xml") as profile:
        profile.write(PROFILE.format(port=sys.argv[1]))
        profile.flush()
        os.environ[environment.PROFILE_OF_2 if environment.has_fast_dds_2() else environment.PROFILE] = profile.name
        rclpy.init()
        node = rclpy.create_node("discovery_server")
        print("serving", flush=True)
        with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
            rclpy.spin(node)
        node.destroy_node()
        rclpy.try_shutdown()


main()
