/** Calls `onAbort` for each item whose signal aborts after `add`, with one listener per signal. */
export class AbortListeners<T> {
  readonly #items = new Map<AbortSignal, { readonly items: Set<T>; readonly listener: () => void }>();
  readonly #onAbort: (item: T) => void;

  constructor(onAbort: (item: T) => void) {
    this.#onAbort = onAbort;
  }

  add(signal: AbortSignal, item: T): void {
    const entry = this.#items.get(signal) ?? this.#listen(signal);
    entry.items.add(item);
  }

  remove(signal: AbortSignal, item: T): void {
    const entry = this.#items.get(signal);
    entry?.items.delete(item);
    if (entry === undefined || entry.items.size > 0) return;
    this.#items.delete(signal);
    signal.removeEventListener("abort", entry.listener);
  }

  #listen(signal: AbortSignal): { readonly items: Set<T>; readonly listener: () => void } {
    const items = new Set<T>();
    const listener = (): void => {
      for (const item of items) this.#onAbort(item);
    };
    const entry = { items, listener };
    this.#items.set(signal, entry);
    signal.addEventListener("abort", listener);
    return entry;
  }
}
