// The data in the one-file page: compressed tables and objects by name, each unpacked on first use.
import { type Columns, decode } from "../base/columns";
import type { Wait } from "../base/protocol";

/** Waits by number, and the numbers of the waits in their chains. */
export interface Waits {
  readonly waits: Readonly<Record<string, Wait>>;
  readonly chains: Readonly<Record<string, readonly number[]>>;
}

/** Returns whether this page contains a trace. */
export function isEmbedded(): boolean {
  return document.getElementById("ptt-trace") !== null;
}

export class Packed {
  private readonly tables = new Map<string, Promise<unknown>>();

  json<T>(name: string): Promise<T> {
    return this.once(
      name,
      async () => JSON.parse(new TextDecoder().decode(await unpack(name))) as T,
    );
  }

  table<C>(name: string): Promise<Columns<C>> {
    return this.once(name, async () => decode<C>(await unpack(name)));
  }

  private once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const known = this.tables.get(name) ?? make();
    this.tables.set(name, known);
    return known as Promise<T>;
  }
}

async function unpack(name: string): Promise<Uint8Array> {
  const element = document.getElementById(`ptt-${name}`);
  const text = atob(element?.textContent ?? "");
  element?.remove();
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
