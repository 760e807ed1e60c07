import { type buildConnector, Client, type Dispatcher } from "undici";

export interface ConnectionOptions {
  readonly connect: buildConnector.connector;
  /** Bytes of an answer's headers. */
  readonly headerBytesMax: number;
  /** Called when its socket has closed. */
  readonly onClosed: (connection: Connection) => void;
}

/** One connection to one origin; it is opened with the first request. */
export class Connection {
  readonly #client: Client;
  #isOpen = false;

  constructor(origin: string, { connect, headerBytesMax, onClosed }: ConnectionOptions) {
    this.#client = new Client(origin, {
      connect,
      maxHeaderSize: headerBytesMax,
      // The deadline of the attempt covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.#client.on("connect", () => {
      this.#isOpen = true;
    });
    this.#client.on("disconnect", () => {
      this.#isOpen = false;
      onClosed(this);
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client.dispatch(request, handler);
  }

  /** Fails the request under way. */
  async close(): Promise<void> {
    await this.#client.destroy();
  }
}
