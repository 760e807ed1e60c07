import { heartBeatLooks, heartBeatTolerance } from "./limits.ts";

export interface HeartBeatsParts {
  /** Milliseconds between heart-beats in either direction; 0 for none. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** Bytes that were written to the client so far. */
  readonly writtenBytes: () => number;
  readonly send: () => void;
  /** Whether the broker itself does not read now: then the client is not silent. */
  readonly isDeaf: () => boolean;
  readonly onSilent: () => void;
}

/** Heart-beats of one connection in both directions, by timers of the monotonic clock. */
export class HeartBeats {
  readonly #parts: HeartBeatsParts;
  readonly #sending: NodeJS.Timeout | undefined;
  readonly #silence: NodeJS.Timeout | undefined;
  #writtenBytes = 0;

  constructor(parts: HeartBeatsParts) {
    this.#parts = parts;
    const { sentMs, receivedMs } = parts;
    if (sentMs > 0) this.#sending = setInterval(() => this.#look(), sentMs / heartBeatLooks);
    if (receivedMs > 0) this.#silence = setTimeout(() => this.#silent(), receivedMs * heartBeatTolerance);
  }

  /** Any byte of the client is a sign of life. */
  received(): void {
    this.#silence?.refresh();
  }

  close(): void {
    clearInterval(this.#sending);
    clearTimeout(this.#silence);
  }

  #look(): void {
    const writtenBytes = this.#parts.writtenBytes();
    if (writtenBytes === this.#writtenBytes) this.#parts.send();
    this.#writtenBytes = this.#parts.writtenBytes();
  }

  #silent(): void {
    if (this.#parts.isDeaf()) this.#silence?.refresh();
    else this.#parts.onSilent();
  }
}
