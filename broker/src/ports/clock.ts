/** Time, as `domain` and `engine` receive it, so that a whole cluster can run on virtual time. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
  /** Calls `action` once after `delayMs`; the returned function cancels it. A timer never keeps the process alive. */
  after(delayMs: number, action: () => void): () => void;
  /** Calls `action` once, after the input that has already arrived was handled. */
  soon(action: () => void): void;
}
