export interface SilenceTimerParts {
  readonly timeoutMs: number;
  /** Whether the client does not count as silent now, see `Intake.isAwaited`. */
  readonly isAwaited: () => boolean;
  readonly onSilent: () => void;
}

/** Notices that a client has been silent for too long. */
export class SilenceTimer {
  readonly #parts: SilenceTimerParts;
  readonly #timer: NodeJS.Timeout;
  #isOver = false;

  constructor(parts: SilenceTimerParts) {
    this.#parts = parts;
    this.#timer = setTimeout(() => this.#check(), parts.timeoutMs);
  }

  /** Call it at each sign of life. */
  heard(): void {
    this.#isOver = false;
    this.#timer.refresh();
  }

  close(): void {
    this.#isOver = false;
    clearTimeout(this.#timer);
  }

  /**
   * Reports the client only after the broker has read its sockets in this turn. Timers run first: after a pause of the process or of its reads, a sign of life
   * may have arrived in time and still be unread.
   */
  #check(): void {
    if (this.#parts.isAwaited()) {
      this.#timer.refresh();
      return;
    }
    this.#isOver = true;
    setImmediate(() => {
      if (this.#isOver) this.#parts.onSilent();
    });
  }
}
