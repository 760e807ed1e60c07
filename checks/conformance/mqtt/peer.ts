import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import mqttPacket, { type Packet } from "mqtt-packet";
import { expect } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";

/** The broker's addresses, by transport. */
export interface Addresses {
  /** Port of MQTT over TCP. */
  readonly tcp: number;
  /** Address of MQTT over WebSocket. */
  readonly websocket: string;
}

export type Transport = keyof Addresses;

interface PeerOptions {
  readonly transport: Transport;
  readonly version: 4 | 5;
  /** Where the connection comes from; the system chooses if left out. */
  readonly localAddress?: string | undefined;
}

type PacketOf<Command extends Packet["cmd"]> = Extract<Packet, { cmd: Command }>;

/** The client's end of one connection. It sends any bytes, and reads with the parser of another implementation. */
export class Peer {
  readonly version: 4 | 5;
  readonly #stream: Duplex;
  readonly #received: Packet[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;
  #problem: Error | undefined;

  constructor(stream: Duplex, version: 4 | 5) {
    this.version = version;
    this.#stream = stream;
    const parser = mqttPacket.parser({ protocolVersion: version });
    parser.on("packet", (packet) => {
      this.#received.push(packet);
      this.#wake?.();
    });
    parser.on("error", (error: Error) => {
      this.#problem = error;
      this.#wake?.();
    });
    stream.on("data", (chunk: Buffer) => parser.parse(chunk));
    stream.on("error", () => {});
    const closed = (): void => {
      this.#isClosed = true;
      this.#wake?.();
    };
    stream.once("end", closed);
    stream.once("close", closed);
  }

  static async open(addresses: Addresses, { transport, version, localAddress }: PeerOptions): Promise<Peer> {
    const from = localAddress === undefined ? {} : { localAddress };
    if (transport === "tcp") {
      const socket = connect({ host: "127.0.0.1", port: addresses.tcp, ...from });
      await once(socket, "connect");
      return new Peer(socket, version);
    }
    const webSocket = new WebSocket(addresses.websocket, "mqtt", from);
    await once(webSocket, "open");
    return new Peer(createWebSocketStream(webSocket), version);
  }

  send(packet: object): void {
    const whole = { protocolId: "MQTT", protocolVersion: this.version, ...packet };
    this.sendBytes(mqttPacket.generate(whole as Packet, { protocolVersion: this.version })); // the test gives it the fields
  }

  sendBytes(...bytes: readonly Uint8Array[]): void {
    this.#stream.write(Buffer.concat(bytes));
  }

  /** Closes the connection without DISCONNECT. */
  drop(): void {
    this.#stream.destroy();
  }

  /** Stops reading, and stays connected. */
  pause(): void {
    this.#stream.pause();
  }

  /** Returns the next packet; undefined once the broker has closed. */
  async any(): Promise<Packet | undefined> {
    while (this.#received.length === 0 && !this.#isClosed && this.#problem === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#problem !== undefined) throw this.#problem;
    return this.#received.shift();
  }

  /** Returns the next packet. Checks that it is of this kind. */
  async next<Command extends Packet["cmd"]>(command: Command): Promise<PacketOf<Command>> {
    const packet = await this.any();
    expect(packet?.cmd, JSON.stringify(packet)).toBe(command);
    return packet as PacketOf<Command>; // compared above
  }

  /** Checks that the broker closes without another packet. */
  async expectClosed(): Promise<void> {
    expect(await this.any()).toBeUndefined();
  }

  /** Checks that the broker ends the connection; in 5.0, with a DISCONNECT that has this reason code. */
  async expectEnded(reasonCode: number): Promise<void> {
    if (this.version === 5) expect(await this.next("disconnect")).toMatchObject({ reasonCode });
    await this.expectClosed();
  }

  /** Checks that no packet comes before the answer to a ping. */
  async expectQuiet(): Promise<void> {
    this.send({ cmd: "pingreq" });
    await this.next("pingresp");
  }
}
