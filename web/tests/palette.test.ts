// Colours: nobody is to take the colour of an owner for that of contention, whatever colours he can tell apart.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

type Triple = readonly [number, number, number];
type Matrix = readonly [Triple, Triple, Triple];

/** How colours look, in linear light, where one kind of cones is missing: Machado, Oliveira and Fernandes, 2009. */
const VISIONS: Readonly<Record<string, Matrix>> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const XYZ: Matrix = [
  [0.4124564, 0.3575761, 0.1804375],
  [0.2126729, 0.7151522, 0.072175],
  [0.0193339, 0.119192, 0.9503041],
];
/** All that the first lane of a thread is drawn in. */
const STATES = [
  "not-waiting",
  "contended",
  "idle",
  "join",
  "timeout",
  "cancelled",
  "unknown",
  "gil",
  "running",
  "ready",
  "asleep",
  "preempted",
];
const OWNERS = Array.from({ length: 8 }, (_, at) => `owner-${at}`);

function times(matrix: Matrix, [x, y, z]: Triple): Triple {
  return matrix.map((row) => row[0] * x + row[1] * y + row[2] * z) as unknown as Triple;
}

function linear(colour: string): Triple {
  return [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as unknown as Triple;
}

function lab(colour: string, vision: Matrix): Triple {
  const seen = times(vision, linear(colour)).map((value) => Math.min(1, Math.max(0, value)));
  const [x, y, z] = times(XYZ, seen as unknown as Triple);
  const f = (value: number) =>
    value > 216 / 24389 ? Math.cbrt(value) : (841 * value) / 108 + 4 / 29;
  const [a, b, c] = [f(x / 0.95047), f(y), f(z / 1.08883)];
  return [116 * b - 16, 500 * (a - b), 200 * (b - c)];
}

/** Returns how different two colours look to who tells them apart worst. */
function apart(one: string, other: string): number {
  return Math.min(
    ...Object.values(VISIONS).map((vision) => {
      const [a, b] = [lab(one, vision), lab(other, vision)];
      return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    }),
  );
}

function contrast(one: string, other: string): number {
  const light = (colour: string) => times(XYZ, linear(colour))[1];
  const [a, b] = [light(one), light(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

const sheet = readFileSync(join(__dirname, "../../../web/src/base/theme.css"), "utf8");
for (const theme of ["light", "dark"]) {
  const block = sheet.slice(sheet.indexOf(`data-theme="${theme}"`)).split("}")[0] ?? "";
  const colours = new Map([...block.matchAll(/--([\w-]+): (#\w{6})/g)].map((m) => [m[1], m[2]]));
  const colour = (name: string) => colours.get(name) ?? assert.fail(name);
  const contended = colour("state-contended");

  test(`${theme}: no owner and no state looks as contention does`, () => {
    assert.equal(colour("queue"), contended);
    for (const name of [...OWNERS, ...STATES.map((state) => `state-${state}`)]) {
      if (name === "state-contended") continue;
      assert.ok(apart(colour(name), contended) >= 15, name);
    }
  });

  test(`${theme}: owners look different from one another and from several together`, () => {
    for (const [at, name] of OWNERS.entries()) {
      const others = [...OWNERS.slice(at + 1), "state-hold"];
      for (const other of others) {
        assert.ok(apart(colour(name), colour(other)) >= 8, `${name} and ${other}`);
      }
    }
  });

  test(`${theme}: holds of the selected lock look like no other, those that others want most of all`, () => {
    for (const lit of ["lit-held", "lit-wanted"]) {
      const others = ["state-hold", "state-hold-shared", "state-contended", "bg"];
      for (const other of [...others, lit === "lit-held" ? "lit-wanted" : "lit-held"]) {
        assert.ok(apart(colour(lit), colour(other)) >= 20, `${lit} and ${other}`);
      }
    }
  });

  test(`${theme}: the end of a turn that was taken away is seen on all owners`, () => {
    for (const name of OWNERS) {
      assert.ok(apart(colour(name), colour("state-preempted")) >= 8, name);
    }
  });

  test(`${theme}: states look different from one another`, () => {
    for (const [at, one] of STATES.entries()) {
      for (const other of STATES.slice(at + 1)) {
        const pair = apart(colour(`state-${one}`), colour(`state-${other}`));
        assert.ok(pair >= 12, `${one} and ${other}: ${pair}`);
      }
    }
  });

  test(`${theme}: what is written on a colour can be read, and what bounds a field be seen`, () => {
    for (const name of [...STATES, "hold", "hold-shared"].map((state) => `state-${state}`)) {
      assert.ok(contrast(colour(name), colour(`${name}-ink`)) >= 4.5, name);
    }
    for (const name of OWNERS) assert.ok(contrast(colour(name), colour("owner-ink")) >= 4.5, name);
    for (const place of ["bg", "bg-raised"]) {
      assert.ok(contrast(colour("line-field"), colour(place)) >= 3, place);
    }
  });
}
