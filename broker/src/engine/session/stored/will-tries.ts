import { Cancellation, type CancelSignal } from "../../../lib/cancellation.ts";
import { pause } from "../../../lib/pause.ts";
import { SetMap } from "../../../lib/set-map.ts";
import type { Clock } from "../../../ports/clock.ts";

export interface WillTriesParts {
  readonly clock: Clock;
  readonly signal: CancelSignal;
}

/** A will that no sweep finds: its session was only in memory, or the store had no room for it when another connection came. */
export interface TriedWill {
  readonly bytes: number;
  /** Name of the will's session, if the session was only in memory. */
  readonly name?: string;
  /** The will's delay, in milliseconds, counted from now. */
  readonly delayMs: number;
}

interface Waiting {
  /** When the delay has passed, by the monotonic clock. */
  readonly dueAt: number;
  isDropped: boolean;
  /** Ends the wait for the next try. */
  wake: Cancellation;
}

/** Time between two tries, in milliseconds. */
const retryEveryMs = 1_000;

/** Maximum number of tries to publish a will. */
const willTriesMax = 60;

/** Maximum number of bytes of wills that wait for another try. A client that reconnects again and again must not fill the memory with wills. */
const retriedWillBytesMax = 4 * 1024 * 1024;

/** Publishes wills that are only in memory. Retries while the broker refuses them for a reason that passes. */
export class WillTries {
  readonly #parts: WillTriesParts;
  #bytes = 0;
  /** Wills of sessions that were only in memory, by the name of the session. */
  readonly #waiting = new SetMap<string, Waiting>();

  constructor(parts: WillTriesParts) {
    this.#parts = parts;
  }

  /** Returns whether the will is settled; `publish` returns the same, and must not reject. */
  async run({ bytes, name, delayMs }: TriedWill, publish: () => Promise<boolean>): Promise<boolean> {
    const dueAt = this.#parts.clock.monotonic() + delayMs;
    const waiting: Waiting = { dueAt, isDropped: false, wake: new Cancellation() };
    if (name !== undefined) this.#waiting.add(name, waiting);
    try {
      if (await publish()) return true;
      if (this.#bytes + bytes > retriedWillBytesMax) return false;
      this.#bytes += bytes;
      const isSettled = await this.#retry(waiting, publish);
      this.#bytes -= bytes;
      return isSettled;
    } finally {
      if (name !== undefined) this.#waiting.delete(name, waiting);
    }
  }

  /**
   * Call it when the client of a session has another connection, before the client can publish over it. Drops its wills whose delay has not passed
   * ([MQTT-3.1.2-8]), and tries the others at once, so that they precede the client's next publishes.
   */
  returned(name: string): void {
    const now = this.#parts.clock.monotonic();
    for (const waiting of this.#waiting.get(name)) {
      waiting.isDropped ||= now < waiting.dueAt;
      waiting.wake.abort();
    }
  }

  async #retry(waiting: Waiting, publish: () => Promise<boolean>): Promise<boolean> {
    const { clock, signal } = this.#parts;
    for (let tries = 1; tries < willTriesMax && !waiting.isDropped && !signal.aborted; tries += 1) {
      await pause(clock, retryEveryMs, signal, waiting.wake);
      if (waiting.isDropped) break;
      waiting.wake = new Cancellation();
      if (await publish()) return true;
    }
    return waiting.isDropped;
  }
}
