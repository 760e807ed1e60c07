import { connect, type Socket } from "node:net";
import { whenClosed } from "../../harness/when-closed.ts";

/** Bytes that a client sends at once. */
export interface Step {
  readonly bytes: Uint8Array;
  /** Whether the client may continue, given everything that it has received. If left out, it continues at once. */
  readonly isDone?: ((received: Buffer) => boolean) | undefined;
}

/** Silence of the broker after which the client gives up, in milliseconds. */
const silenceMsMax = 60_000;

/**
 * Connects to a port of the broker and runs the steps. Returns everything received until the broker closed. @throws Error if the broker does not
 * close; also whatever {@link Step.isDone} throws.
 */
export async function converse(port: number, steps: readonly Step[]): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const closed = whenClosed(socket);
  const client = new Client(socket, steps);
  await closed;
  return client.received;
}

/** Sends one step after the other, and then ends its side of the connection. */
class Client {
  readonly #socket: Socket;
  readonly #steps: Step[];
  #received = Buffer.alloc(0);
  #problem: unknown;
  #isDone: Step["isDone"];

  constructor(socket: Socket, steps: readonly Step[]) {
    this.#socket = socket;
    this.#steps = [...steps];
    socket.setTimeout(silenceMsMax, () => this.#fail(new Error("the broker neither answers nor closes")));
    socket.on("data", (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk]);
      if (this.#isDone !== undefined) this.#sendIfDone(this.#isDone);
    });
    this.#send();
  }

  get received(): Buffer {
    if (this.#problem !== undefined) throw this.#problem;
    return this.#received;
  }

  #sendIfDone(isDone: NonNullable<Step["isDone"]>): void {
    try {
      if (isDone(this.#received)) this.#send();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Sends the steps up to and including the next one that the broker must answer first, in one write. */
  #send(): void {
    this.#socket.cork();
    this.#isDone = undefined;
    while (this.#isDone === undefined) {
      const step = this.#steps.shift();
      if (step === undefined) {
        this.#socket.end();
        break;
      }
      this.#socket.write(step.bytes);
      this.#isDone = step.isDone;
    }
    this.#socket.uncork();
  }

  #fail(problem: unknown): void {
    this.#problem = problem;
    this.#socket.destroy();
  }
}
