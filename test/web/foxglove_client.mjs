// SPDX-License-Identifier: Apache-2.0
// Foxglove's own client library with its usual settings: reads, sets a parameter, publishes. Prints what it has
// seen, and publishes on until its input ends.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { FoxgloveClient } = require("@foxglove/ws-protocol");
const [address, topic] = process.argv.slice(2);
const client = new FoxgloveClient({ ws: new WebSocket(address, [FoxgloveClient.SUPPORTED_SUBPROTOCOL]) });
const seen = {};
const note = (name, value) => {
  seen[name] ??= value;
  if (["capabilities", "message", "parameter"].every((each) => each in seen)) console.log(JSON.stringify(seen));
};
process.stdin.on("end", () => process.exit(0)).resume();
client.on("error", () => process.exit(1));
client.on("serverInfo", ({ capabilities }) => {
  note("capabilities", capabilities);
  client.setParameters([{ name: "/web_bridge.max_speed", value: 2 }], "set");
  const channel = client.advertise({ topic, encoding: "cdr", schemaName: "std_msgs/msg/Bool" });
  setInterval(() => client.sendMessage(channel, new Uint8Array([0, 1, 0, 0, 1])), 100);
});
client.on("advertise", (channels) => {
  const diagnostics = channels.find((channel) => channel.topic === "/diagnostics");
  if (diagnostics) client.subscribe(diagnostics.id);
});
client.on("message", ({ data }) => note("message", data.byteLength > 0));
client.on("parameterValues", ({ parameters }) => note("parameter", parameters));
