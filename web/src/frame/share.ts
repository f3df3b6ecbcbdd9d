// The button for a link that lets another browser in, to the present view.
import { format } from "../base/address";
import type { App } from "../base/app";
import { button } from "../base/dom";
import { duration } from "../base/units";

/** Returns the address that opens the view with a code. The code works once. */
export function linkTo(origin: string, code: string, view: string): string {
  const parameters = new URLSearchParams({ token: code, ...(view ? { view } : {}) });
  return `${origin}/?${parameters}`;
}

export function mountShare(tools: HTMLElement, app: App): void {
  // A page in a file has no server that could let others in.
  if (!app.source.served) return;
  const share = async () => {
    const { code, seconds } = await app.source.post("invite", { browsers: 1 });
    const link = linkTo(location.origin, code, format(app.store.get()));
    const good = `lets another browser in once, within ${duration(seconds * 1e9)}`;
    try {
      await navigator.clipboard.writeText(link);
      app.notify(`Copied a link that ${good}`);
    } catch {
      // Only a page of this machine, or a page over HTTPS, may use the clipboard.
      app.notify(`This link ${good}: ${link}`);
    }
  };
  const failed = (error: unknown) => {
    app.notify(error instanceof Error ? error.message : String(error), "error");
  };
  const title = "Copy a link that lets another browser in once, to the present view";
  tools.append(button("Link", () => void share().catch(failed), { id: "share", title }));
}
