export interface OutgoingParts {
  readonly written: () => Promise<void>;
  readonly onSent: () => void;
  readonly onFailed: (error: unknown) => void;
}

interface Waiting {
  readonly send: () => void;
  isWritten: boolean;
}

/** What leaves for a peer, in order; some of it only after the session was written. */
export class Outgoing {
  readonly #written: () => Promise<void>;
  readonly #onSent: () => void;
  readonly #onFailed: (error: unknown) => void;
  #waiting: Waiting[] = [];
  #isClosed = false;

  /** `written` answers when what the session is now is on disk; `onSent` is called after something that waited has left, or failed to. */
  constructor({ written, onSent, onFailed }: OutgoingParts) {
    this.#written = written;
    this.#onSent = onSent;
    this.#onFailed = onFailed;
  }

  /** How much waits. */
  get size(): number {
    return this.#waiting.length;
  }

  send(send: () => void, { afterWrite }: { readonly afterWrite: boolean }): void {
    if (!afterWrite && this.#waiting.length === 0) {
      this.#attempt(send);
      return;
    }
    const waiting = { send, isWritten: !afterWrite };
    this.#waiting.push(waiting);
    if (!afterWrite) return;
    void this.#sendWhenWritten(waiting);
  }

  /** Nothing leaves any more. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
  }

  #attempt(send: () => void): void {
    try {
      send();
    } catch (error) {
      this.#onFailed(error);
    }
  }

  async #sendWhenWritten(waiting: Waiting): Promise<void> {
    await this.#written();
    waiting.isWritten = true;
    this.#sendWritten();
  }

  #sendWritten(): void {
    if (this.#isClosed) return;
    for (let [first] = this.#waiting; first?.isWritten === true; [first] = this.#waiting) {
      this.#waiting.shift();
      this.#attempt(first.send);
    }
    this.#onSent();
  }
}
