// Texts from a trace, ready to be shown: their characters must not change the text around them.

/** Control characters, and characters that change the direction of a text. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const FROM_THE_RIGHT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const ISOLATE = "\u2068";
const END = "\u2069";
/** The end of a label after the name: the id of a thread or process. */
const BEHIND = /^(.*)( \(\d+\))$/s;

/** Returns a text with invisible characters written out, as in `\u202e`. */
export function plain(text: string): string {
  return text.replace(UNSEEN, (one) => {
    return `\\u${(one.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}

/** Returns the name in a label, and the rest of the label. */
export function nameAndRest(label: string): readonly [string, string] {
  const found = BEHIND.exec(label);
  return [found?.[1] ?? label, found?.[2] ?? ""];
}

/** Returns a label for a canvas. A right-to-left name does not change the direction of the rest. */
export function drawnLabel(label: string): string {
  const [name, rest] = nameAndRest(plain(label));
  return FROM_THE_RIGHT.test(name) ? ISOLATE + name + END + rest : name + rest;
}
