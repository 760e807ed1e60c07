import { SilenceTimer } from "../shared/connection/silence-timer.ts";
import { heartBeatLooks, heartBeatTolerance } from "./limits.ts";

export interface HeartBeatsParts {
  /** Milliseconds between heart-beats in either direction; 0 for none. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** Bytes that were written to the client so far. */
  readonly writtenBytes: () => number;
  readonly send: () => void;
  /** Whether the client waits for the broker, or has read bytes of a full outbox since the last call. Such a client does not count as silent. */
  readonly isAwaited: () => boolean;
  readonly onSilent: () => void;
}

/** Heart-beats of one connection in both directions, by timers of the monotonic clock. */
export class HeartBeats {
  readonly #parts: HeartBeatsParts;
  readonly #sending: NodeJS.Timeout | undefined;
  readonly #silence: SilenceTimer | undefined;
  #writtenBytes = 0;

  constructor(parts: HeartBeatsParts) {
    this.#parts = parts;
    const { sentMs, receivedMs, isAwaited, onSilent } = parts;
    if (sentMs > 0) this.#sending = setInterval(() => this.#beat(), sentMs / heartBeatLooks);
    if (receivedMs > 0)
      this.#silence = new SilenceTimer({ timeoutMs: receivedMs * heartBeatTolerance, isAwaited, onSilent });
  }

  /** Call it when bytes of the client arrive: any byte is a sign of life. */
  received(): void {
    this.#silence?.heard();
  }

  close(): void {
    clearInterval(this.#sending);
    this.#silence?.close();
  }

  #beat(): void {
    const writtenBytes = this.#parts.writtenBytes();
    if (writtenBytes === this.#writtenBytes) this.#parts.send();
    this.#writtenBytes = this.#parts.writtenBytes();
  }
}
