import { Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { AttemptError } from "../attempt-error.ts";

export interface ConnectionOptions {
  readonly connect: buildConnector.connector;
  /** Maximum size of an answer's headers. */
  readonly headerBytesMax: number;
  /** Called when its socket has closed. */
  readonly onClosed: (connection: Connection) => void;
}

/**
 * Bytes that a receiver may send in answer to one request, after TLS. All other limits fit within this one. Only this one limits the bytes of
 * informational answers and chunk extensions.
 */
const receivedBytesMax = 256 * 1024;

/** One connection to one origin, opened by its first request. */
export class Connection {
  readonly #client: Client;
  #isOpen = false;
  #socket: Socket | undefined;
  /** The socket while it connects. */
  #connecting: Socket | undefined;
  /** Bytes received before the current request. */
  #earlierBytes = 0;

  constructor(origin: string, { connect, headerBytesMax, onClosed }: ConnectionOptions) {
    this.#client = new Client(origin, {
      connect: (target, callback) => {
        // A connector of undici returns the socket, although its type does not say so.
        const socket: unknown = connect(target, (...end) => this.#connected(end, callback));
        if (socket instanceof Socket) this.#connecting = socket;
      },
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

  /** Whether the receiver has sent a byte since the last request began. */
  get hasReceived(): boolean {
    return (this.#socket?.bytesRead ?? 0) > this.#earlierBytes;
  }

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#earlierBytes = this.#socket?.bytesRead ?? 0;
    this.#client.dispatch(request, handler);
  }

  /** Closes the connection. Also ends an attempt to connect, which undici would leave running until its timeout. The current request fails. */
  async close(): Promise<void> {
    this.#connecting?.destroy(new AttemptError("the connection was closed while it was opened"));
    await this.#client.destroy();
  }

  #connected(end: Parameters<buildConnector.Callback>, callback: buildConnector.Callback): void {
    this.#connecting = undefined;
    if (end[0] === null) this.#watch(end[1]);
    callback(...end);
  }

  #watch(socket: Socket): void {
    this.#socket = socket;
    this.#earlierBytes = 0;
    socket.on("readable", () => {
      if (socket.bytesRead - this.#earlierBytes > receivedBytesMax)
        socket.destroy(new AttemptError("the answer is too long"));
    });
  }
}
