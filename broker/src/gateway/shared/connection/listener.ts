/** Where a listener listens. Port 0 takes any free one. */
export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Takes the connections of one protocol, or of all that share a port. */
export interface Listener {
  /** How the banner, the log and errors call it. */
  readonly name: string;
  /** Answers its address, as clients write it. Rejects with the system's error, such as EADDRINUSE. */
  listen(place: Place): Promise<string>;
  /** Stops accepting, then lets what is in progress finish within the listener's deadline. Also when it never listened, and a second time. */
  drain(): Promise<void>;
  /** Ends every connection that is left. Comes after `drain`. */
  close(): Promise<void>;
}
