// Times, sizes and counts in readable form.

const UNITS: readonly (readonly [number, string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];

/** Returns a length of time with three significant digits, as in `1.25 ms`. */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  if (size >= 60e9) return minutes(ns);
  for (const [unit, name] of UNITS) {
    // A value that would be rounded up to 1000 gets the next unit.
    if (size >= unit * 0.9995) return `${significant(ns / unit)} ${name}`;
  }
  return `${Math.round(ns)} ns`;
}

/**
 * Returns a time since the start of the trace, with the digits for steps of `step` ns. Times in the
 * same place get the same unit: the unit for `most`.
 */
export function instant(ns: number, step: number, most = ns): string {
  const [unit, name] = UNITS.find(([unit]) => Math.abs(most) >= unit) ?? [1, "ns"];
  const digits = step >= unit ? 0 : Math.min(9, Math.ceil(Math.log10(unit / step) - 1e-9));
  const [whole = "", part = ""] = (ns / unit).toFixed(digits).split(".");
  const grouped = part.replace(/(\d{3})(?=\d)/g, "$1 ");
  return `${whole}${grouped ? `.${grouped}` : ""} ${name}`;
}

/**
 * Returns the ns of a length of time such as `1.5 ms`; null if the text is none. A number alone is
 * not a length.
 */
export function parsedDuration(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?|\.\d+)\s*(ns|us|µs|μs|ms|s)$/.exec(text.trim().toLowerCase());
  if (!found) return null;
  const unit = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9 }[found[2] ?? ""] ?? 1;
  return Math.round(Number(found[1]) * unit);
}

/** Returns a sentence for terminals with the units of the page. */
export function sentence(text: string): string {
  return text.replace(/(\d) us\b/g, "$1 µs");
}

/** Returns a time since the start of the trace, exact to the nanosecond, as in `1.234 567 890 s`. */
export function exact(ns: number): string {
  const whole = Math.floor(ns / 1e9);
  const rest = String(Math.round(ns - whole * 1e9)).padStart(9, "0");
  return `${whole}.${rest.slice(0, 3)} ${rest.slice(3, 6)} ${rest.slice(6)} s`;
}

/** Returns a whole number with its digits in groups of three. */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Returns a number with its noun, as in `1 event` and `2 events`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

function significant(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function minutes(ns: number): string {
  const seconds = Math.round(ns / 1e9);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [hours, mins, secs] = parts as [number, number, number];
  return hours ? `${hours} h ${mins} min` : `${mins} min ${secs} s`;
}
