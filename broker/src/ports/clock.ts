/** Time, as `domain` and `engine` receive it, so that a whole cluster can run on virtual time. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
  /** Milliseconds from some origin, which only grow, also while the process is halted; for what must not depend on the time of day. */
  monotonic(): number;
  /** Calls `action` once after `delayMs`; the returned function cancels it. A timer never keeps the process alive. */
  after(delayMs: number, action: () => void): () => void;
  /** Calls `action` once, after the input that has already arrived was handled. */
  soon(action: () => void): void;
}
