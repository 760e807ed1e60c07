import { connect, type Socket } from "node:net";

/** One kind of hostile client: its request and its behaviour. */
export interface Attack {
  readonly name: string;
  readonly connections: number;
  /** Raw bytes on the wire. */
  readonly request: Uint8Array;
  /** Never reads the answer. By default, a client reads and discards it. */
  readonly stopsReading?: boolean;
}

/** Pause of a client before it reconnects, so that the clients leave the processors to the broker under test. */
const reconnectPauseMs = 1000;

/**
 * Hostile clients that run until stopped: each connects, sends its request, and starts again when the broker closes the connection. Counts the
 * answers by their status line.
 */
export class Flood implements Disposable {
  readonly #url: URL;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #counts = new Map<string, number>();
  #isStopped = false;

  constructor(url: string, attacks: readonly Attack[]) {
    this.#url = new URL(url);
    for (const attack of attacks) {
      for (let index = 0; index < attack.connections; index += 1) this.#begin(attack);
    }
  }

  /** Number of answers per attack and status: `{"web page: HTTP/1.1 403": 12}`. */
  get answers(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const socket of this.#sockets) socket.destroy();
  }

  #begin(attack: Attack): void {
    const socket = connect({ host: this.#url.hostname, port: Number(this.#url.port), noDelay: true });
    this.#sockets.add(socket);
    socket.on("error", () => {}); // A reset ends the connection like a close.
    socket.once("connect", () => socket.write(attack.request));
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#beginLater(attack);
    });
    if (attack.stopsReading === true) socket.pause();
    else socket.on("data", (chunk: Buffer) => this.#count(attack, chunk));
  }

  #beginLater(attack: Attack): void {
    if (this.#isStopped) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#begin(attack);
    }, reconnectPauseMs);
    this.#timers.add(timer);
  }

  #count({ name }: Attack, chunk: Buffer): void {
    const status = /^HTTP\/1\.1 \d{3}/.exec(chunk.toString("latin1", 0, 12))?.[0];
    if (status === undefined) return;
    const key = `${name}: ${status}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
  }
}
