// SPDX-License-Identifier: Apache-2.0
// Bundles the page into dist/: a few files, which the package installs into share/drone_bridge/web.
import { copyFile, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const dist = join(here, "dist");

await rm(dist, { recursive: true, force: true });
await mkdir(dist);
await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.ts" },
  outdir: dist,
  bundle: true,
  // Large, rarely used parts are loaded on demand.
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "linked",
  logLevel: "warning",
});
await copyFile(join(here, "src", "index.html"), join(dist, "index.html"));
