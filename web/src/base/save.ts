// Gives files that the page makes to the browser, which saves them.

/** Lets the browser save a blob under a name. */
export function save(what: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(what);
  link.download = name;
  link.click();
  // The browser may not have begun to read the blob yet.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Returns lines of comma-separated values. */
export function csvOf(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

function field(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
