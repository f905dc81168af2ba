// SPDX-License-Identifier: Apache-2.0
// Runs the page's unit tests, test/*.test.ts, in node.
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { build } from "esbuild";

const tests = join(import.meta.dirname, "test");
const outdir = await mkdtemp(join(tmpdir(), "page-tests-"));
const names = (await readdir(tests)).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: names.map((name) => join(tests, name)),
  outdir,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  mainFields: ["browser", "module", "main"], // as in the page
  logLevel: "warning",
});
run({ files: names.map((name) => join(outdir, name.replace(/ts$/, "mjs"))), isolation: "none" })
  .on("test:fail", () => { process.exitCode = 1; })
  .on("end", () => rm(outdir, { recursive: true }))
  .compose(spec)
  .pipe(process.stdout);
