// Texts out of a trace as they are shown: what they hold must not change what stands around them.

/** Control characters, and those that turn the direction of a text. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const FROM_THE_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const ISOLATE = "\u2068";
const END = "\u2069";
/** What follows a name in a label: a thread's id, a process's. */
const BEHIND = /^(.*)( \(\d+\))$/s;

/** Returns a text in which what cannot be seen is written out, as in `\u202e`. */
export function plain(text: string): string {
  return text.replace(UNSEEN, (one) => {
    return `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}

/** Returns the name in a label, and what stands behind it. */
export function nameAndRest(label: string): readonly [string, string] {
  const found = BEHIND.exec(label);
  return [found?.[1] ?? label, found?.[2] ?? ""];
}

/** Returns a label for a canvas: a name that is read from the right does not turn what follows it. */
export function drawnLabel(label: string): string {
  const [name, rest] = nameAndRest(plain(label));
  return FROM_THE_RIGHT.test(name) ? ISOLATE + name + END + rest : name + rest;
}
