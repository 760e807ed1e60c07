/** Time for `domain` and `engine`, as a port so that a whole cluster can run on virtual time. */
export interface Clock {
  /** Milliseconds since the epoch, UTC. */
  now(): number;
  /**
   * Milliseconds from an arbitrary origin. Never decreases, and advances while the process is suspended. Use it for everything that must not depend
   * on the wall clock.
   */
  monotonic(): number;
  /** Calls `action` once after `delayMs`; the returned function cancels it. A timer does not keep the process alive. */
  after(delayMs: number, action: () => void): () => void;
  /** Calls `action` once, after the process has handled the input that has already arrived. */
  soon(action: () => void): void;
}
