import { connect, type Socket } from "node:net";
import { whenClosed } from "../../harness/when-closed.ts";

/** What a client sends in one go. */
export interface Step {
  readonly bytes: Uint8Array;
  /** Whether the next step, or the end, may follow, given all that has come. Left out where it follows at once. */
  readonly isDone?: ((received: Buffer) => boolean) | undefined;
}

/** A broker that is silent for so long neither answers nor closes. */
const silenceMsMax = 60_000;

/** Answers everything that came until the broker closed. @throws Error where it does not, and what {@link Step.isDone} throws. */
export async function converse(port: number, steps: readonly Step[]): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const closed = whenClosed(socket);
  const client = new Client(socket, steps);
  await closed;
  return client.received;
}

/** Sends one step after the other, and then says that it sends no more. */
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
      if (this.#isDone !== undefined) this.#goOn(this.#isDone);
    });
    this.#send();
  }

  get received(): Buffer {
    if (this.#problem !== undefined) throw this.#problem;
    return this.#received;
  }

  #goOn(isDone: NonNullable<Step["isDone"]>): void {
    try {
      if (isDone(this.#received)) this.#send();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** As many steps as may follow each other, in one write. */
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
