// SPDX-License-Identifier: Apache-2.0
// Assembles the page: STOP first, independent of the other parts.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import "./inspect.css";
import "./pilot_view.css";
import { mendLanguage, missing, reasonOf } from "./browser_features";
import { h, setText } from "./dom";
import { Fleet } from "./fleet";
import { Helm } from "./helm";
import { Stop } from "./stop";
import { Stream } from "./stream";

mendLanguage(); // before other parts are loaded
const stream = new Stream();
const helm = new Helm();
const fleet = new Fleet(stream, helm);
const stop = new Stop(stream, helm, fleet);
const lacks = h("p.hint.missing", { role: "status", hidden: true });
const connecting = h("p.connecting", { role: "status" }, `Connecting to ${location.host} …`);
const page = document.getElementById("page")!;
page.append(h("header.top", {}, h("h1", {}, h("span.mark"), "drone_bridge"), stop.element), stop.banner, lacks, connecting);

/** Show the parts once the server has listed its topics, or can't be reached. Before that they are empty. */
function endConnecting(): void {
  if (stream.topics.size > 0 || stream.status === "lost") connecting.remove();
}
for (const event of ["graph", "status"]) stream.addEventListener(event, endConnecting);

missing.addEventListener("change", () => {
  setText(lacks, missing.sentences.join(" "));
  lacks.hidden = false;
});
helm.addEventListener("lost", () => stream.reconnect());
helm.connect();
import("./parts")
  .then(({ addParts }) => addParts(page, { stream, helm, fleet, stop }))
  .catch((error: unknown) => missing.report("The rest of the page failed to load", reasonOf(error)))
  .finally(() => stream.connect());
