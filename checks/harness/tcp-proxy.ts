import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { findFreePort } from "./free-port.ts";

/** Forwards connections to one port, or to a port that a function chooses for each, as a load balancer does. A test can cut the connections. */
export class TcpProxy implements AsyncDisposable {
  readonly port: number;
  readonly #target: () => number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #farPorts = new Set<number>();
  #isSilent = false;
  #isRefusing = false;

  private constructor(port: number, target: () => number) {
    this.port = port;
    this.#target = target;
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#take(socket));
  }

  static async start(target: number | (() => number)): Promise<TcpProxy> {
    const proxy = new TcpProxy(await findFreePort(), typeof target === "number" ? () => target : target);
    proxy.#server.listen(proxy.port, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  /** Whether this proxy used this local port for a connection to the target. */
  hadPort(port: number): boolean {
    return this.#farPorts.has(port);
  }

  /** Forwards nothing from now on, like a network that loses every packet. Connections stay open, and the proxy accepts new ones. */
  silence(): void {
    this.#isSilent = true;
    for (const pair of this.#pairs) pair.silence();
  }

  /** Resets all connections from now on, also new ones. */
  refuse(): void {
    this.#isRefusing = true;
    this.cut();
  }

  /** Forwards new connections again, and resets all earlier ones. */
  restore(): void {
    this.#isSilent = false;
    this.#isRefusing = false;
    this.cut();
  }

  /** Resets all connections. */
  cut(): void {
    for (const pair of this.#pairs) pair.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #take(near: Socket): void {
    if (this.#isRefusing) {
      near.on("error", () => {});
      near.resetAndDestroy();
      return;
    }
    const far = connect(this.#target(), "127.0.0.1");
    far.once("connect", () => this.#farPorts.add(far.localPort ?? 0));
    const pair = new Pair(near, far);
    this.#pairs.add(pair);
    pair.onClose(() => this.#pairs.delete(pair));
    if (!this.#isSilent) pair.join();
  }
}

/** The two ends of a connection. */
class Pair {
  readonly #ends: readonly [Socket, Socket];

  constructor(near: Socket, far: Socket) {
    this.#ends = [near, far];
    for (const end of this.#ends) {
      end.setNoDelay(true);
      end.on("error", () => {}); // The close event follows.
    }
  }

  join(): void {
    const [near, far] = this.#ends;
    near.pipe(far);
    far.pipe(near);
    for (const end of this.#ends) end.once("close", () => this.destroy());
  }

  /** Arriving bytes stay in the buffers of the system. */
  silence(): void {
    for (const end of this.#ends) {
      end.unpipe();
      end.pause();
    }
  }

  destroy(): void {
    for (const end of this.#ends) end.resetAndDestroy();
  }

  onClose(listener: () => void): void {
    this.#ends[0].once("close", listener);
  }
}
