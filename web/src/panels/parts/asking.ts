// Asks a question for a panel: shows the progress, an error, and the answer.
import { isAbort, NotYet } from "../../base/api";
import type { App } from "../../base/app";
import { button, h } from "../../base/dom";
import { plain } from "../../base/text";
import { percent } from "../../base/units";

/** How often the answer of a running recording is asked for again, at most. */
const AGAIN_MS = 5000;

export interface Question<T> {
  readonly app: App;
  /** The panel. While it is hidden, nothing is asked. */
  readonly panel: HTMLElement;
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly show: (answer: T) => void;
}

/** A place for messages, and the question behind them. */
export class Asking<T> {
  private readonly text = h("span");
  private readonly act = button("Again", () => this.doOther());
  readonly element = h(
    "p",
    { class: "asking", role: "status", hidden: true },
    this.text,
    " ",
    this.act,
  );
  private wanted = false;
  private stale = false;
  private giveUp: AbortController | null = null;
  private askedAt = 0;
  /** The question was asked before the whole trace was read. */
  private early = false;
  private changes = 0;

  constructor(private readonly question: Question<T>) {
    const { app } = question;
    app.onChange(() => {
      this.changes++;
      // A question during a recording is asked again later, and once more at the end.
      const running = app.trace().state === "running";
      const late = running && performance.now() - this.askedAt > AGAIN_MS;
      if (this.early && (late || this.settled())) this.wanted = true;
      this.askIfSeen();
    });
    app.store.watch(["tab", "dock"], () => this.askIfSeen());
  }

  /** Asks as soon as the panel is visible. A pending answer is ignored. */
  renew(): void {
    this.giveUp?.abort();
    this.wanted = true;
    this.stale = true;
    // The dock shows a panel only after the listeners to the tab were called.
    queueMicrotask(() => this.askIfSeen());
  }

  /** Says which part of the trace the answer is about, if the trace is not complete. */
  private soFar(): string {
    const { state, follow } = this.question.app.trace();
    if (state !== "running") return "";
    return follow
      ? "Up to now: the program is being recorded"
      : "Up to the start of ptt ui: follow the recording with --follow";
  }

  private settled(): boolean {
    const { state, detail } = this.question.app.trace();
    return state !== "running" && detail.ready;
  }

  private askIfSeen(): void {
    if (!this.wanted || this.question.panel.hidden || !this.question.app.store.get().dock) return;
    void this.ask();
  }

  private async ask(): Promise<void> {
    const giveUp = new AbortController();
    this.giveUp?.abort();
    this.giveUp = giveUp;
    this.wanted = false;
    this.askedAt = performance.now();
    this.early = !this.settled();
    const { changes } = this;
    if (this.stale) this.say("Working it out …");
    try {
      const answer = await this.question.ask(giveUp.signal);
      if (giveUp.signal.aborted) return;
      this.stale = false;
      const sofar = this.soFar();
      if (sofar) this.say(sofar);
      else this.element.hidden = true;
      this.question.show(answer);
    } catch (error) {
      if (giveUp.signal.aborted || isAbort(error)) return;
      if (error instanceof NotYet) {
        this.wanted = true;
        this.say(`Working it out: ${percent(error.progress)}`, "Stop");
        // The result may have come while this answer was on its way: there is no second message about it.
        if (changes !== this.changes) this.askIfSeen();
      } else {
        this.say(error instanceof Error ? error.message : String(error), "Again");
        this.text.classList.add("error");
      }
    }
  }

  private say(text: string, act: "Stop" | "Again" | "" = ""): void {
    this.text.textContent = plain(text);
    this.text.classList.remove("error");
    this.act.textContent = act;
    this.act.hidden = act === "";
    this.element.hidden = false;
  }

  /** The server gives up work that nobody asks about any more. */
  private doOther(): void {
    if (this.wanted) {
      this.wanted = false;
      this.say("Stopped", "Again");
    } else this.renew();
  }
}
