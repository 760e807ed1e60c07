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

  /** Timers run before sockets are read: after a pause of the process or of its reading, a sign of life may have come that the broker reads in this turn. */
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
