// Builds the page of `ptt ui`: one index.html, one app.js and one app.css, or the bundles of its unit tests.
//
//     node build.mjs --modules DIR --out DIR [--tests | --licences]
//
// licences.txt has the licences of the packages that end up in the page, and --licences writes it anew. The script begins
// with it, so that it is wherever the page is, and in the files that `ptt ui --export` makes of the page.
//
// DIR of --modules is the node_modules with the packages of package-lock.json; it need not be beside the sources.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
    licences: { type: "boolean", default: false },
  },
});
const modules = resolve(values.modules);
const out = resolve(values.out);
const esbuild = createRequire(join(modules, "nowhere.js"))("esbuild");

const licences = join(web, "licences.txt");

function ours() {
  return readFileSync(join(web, "../LICENSE"), "utf8");
}

function theirs() {
  return values.licences ? "" : readFileSync(licences, "utf8");
}

// The packages of which something is in the page, by name.
function bundled(metafile) {
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs));
  const found = inputs.map((path) => path.match(/.*node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]);
  return [...new Set(found.filter(Boolean))].sort();
}

function headings(packages) {
  return packages.map((name) => {
    const { version, license } = JSON.parse(
      readFileSync(join(modules, name, "package.json"), "utf8"),
    );
    return `== ${name} ${version} (${license})`;
  });
}

// The texts that each package brings along. One that several bring is there once.
function licencesOf(packages) {
  const seen = new Map();
  const parts = headings(packages).map((heading, at) => {
    const directory = join(modules, packages[at]);
    const files = readdirSync(directory).filter((name) =>
      /^(license|notice|copyright)/i.test(name),
    );
    const texts = files.map((name) => {
      const text = readFileSync(join(directory, name), "utf8")
        .replace(/\r|\/?\*{3,}[ */]*|[ \t]+$/gm, "")
        .trim();
      const key = text.replace(/\s+/g, " ");
      const first = seen.get(key);
      seen.set(key, first ?? packages[at]);
      return first ? `${name}: as of ${first}` : text;
    });
    return `${heading}\n\n${texts.join("\n\n")}\n`;
  });
  return `The page of ptt ui has parts of these packages in it:\n\n${parts.join("\n")}`;
}

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
  const { metafile } = await esbuild.build({
    ...common,
    entryPoints: ["main.ts", "app.css"].map((name) => ({ in: join(web, "src", name), out: "app" })),
    outdir: out,
    format: "iife",
    platform: "browser",
    target: ["chrome114", "firefox115"],
    minify: true,
    legalComments: "none", // they are in licences.txt, whole
    banner: { js: `/*!\n${ours()}\n${theirs()}*/` },
    metafile: true,
  });
  const packages = bundled(metafile);
  if (values.licences) {
    writeFileSync(licences, licencesOf(packages));
  } else if (
    headings(packages).join() !==
    theirs()
      .match(/^== .*/gm)
      .join()
  ) {
    throw new Error(`licences.txt is not of ${headings(packages)}: make web-licences`);
  }
  copyFileSync(join(web, "src/index.html"), join(out, "index.html"));
}
