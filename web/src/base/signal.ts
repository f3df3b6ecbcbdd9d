// An event of the page, and the functions to call when it happens.

export class Signal {
  private listeners = new Set<() => void>();

  /** Calls back each time. The returned function ends that. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  emit(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
