// Builds the page of `ptt ui`: one index.html, one app.js and one app.css, or the bundles of its unit tests.
//
//     node build.mjs --modules DIR --out DIR [--tests]
//
// DIR of --modules is the node_modules with the packages of package-lock.json; it need not be beside the sources.
import { copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const web = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    modules: { type: "string", default: join(web, "../build/web/node_modules") },
    out: { type: "string", default: join(web, "../build/web/page") },
    tests: { type: "boolean", default: false },
  },
});
const modules = resolve(values.modules);
const out = resolve(values.out);
const esbuild = createRequire(join(modules, "nowhere.js"))("esbuild");

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const common = { bundle: true, nodePaths: [modules], charset: "utf8", logLevel: "warning" };

if (values.tests) {
  const tests = readdirSync(join(web, "tests")).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...common,
    entryPoints: tests.map((name) => join(web, "tests", name)),
    outdir: out,
    outExtension: { ".js": ".cjs" },
    format: "cjs",
    platform: "node",
    target: "node20",
    sourcemap: "inline",
  });
} else {
  await esbuild.build({
    ...common,
    entryPoints: ["main.ts", "app.css"].map((name) => ({ in: join(web, "src", name), out: "app" })),
    outdir: out,
    format: "iife",
    platform: "browser",
    target: ["chrome114", "firefox115"],
    minify: true,
    legalComments: "none",
  });
  copyFileSync(join(web, "src/index.html"), join(out, "index.html"));
}
