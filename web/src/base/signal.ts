// An event of the page, and the functions that are called when it happens.

export class Signal {
  private listeners = new Set<() => void>();

  /** Calls back each time; the function returned ends that. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  emit(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
