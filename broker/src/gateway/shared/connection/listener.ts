/** Where a listener listens. Port 0 stands for any free port. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Accepts the connections of one protocol, or of all protocols that share a port. */
export interface Listener {
  /** Name in the banner, the log and errors. */
  readonly name: string;
  /** Resolves with the address, as clients write it. Rejects with the system's error, such as EADDRINUSE. */
  listen(place: Place): Promise<string>;
  /**
   * Serves for `delayMs` more (0 if left out), then stops accepting, and lets what is in progress finish within the listener's deadline. May be called again,
   * and on a listener that never listened.
   */
  drain(delayMs?: number): Promise<void>;
  /** What is wrong with the listener's certificate, and what to do; undefined if nothing is. Left out if the listener has no certificate. */
  findWarning?(): string | undefined;
  /** Ends every connection that is left. Call it after `drain`. */
  close(): Promise<void>;
}
