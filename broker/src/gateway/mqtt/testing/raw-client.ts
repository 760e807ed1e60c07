import { once } from "node:events";
import { connect, type Socket } from "node:net";
import mqttPacket, { type Packet } from "mqtt-packet";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import { whenClosed } from "../../testing/when-closed.ts";

/** A connection that sends any bytes, and reads packets with another implementation's parser. */
export class RawClient {
  readonly #socket: Socket;
  readonly #version: 4 | 5;
  readonly packets: Packet[] = [];
  #taken = 0;
  #waiting: Deferred<Packet> | undefined;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;

  private constructor(socket: Socket, version: 4 | 5) {
    this.#socket = socket;
    this.#version = version;
    const parser = mqttPacket.parser({ protocolVersion: version });
    parser.on("packet", (packet) => {
      this.packets.push(packet);
      this.#waiting?.resolve(packet);
    });
    socket.on("data", (chunk) => parser.parse(chunk));
    this.closed = whenClosed(socket);
  }

  static async open(port: number, version: 4 | 5): Promise<RawClient> {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    return new RawClient(socket, version);
  }

  /** Uses an open connection. */
  static over(socket: Socket, version: 4 | 5): RawClient {
    return new RawClient(socket, version);
  }

  /** Opens a connection, and waits for the CONNACK. */
  static async connect(port: number, version: 4 | 5, fields: object = {}): Promise<RawClient> {
    const client = await RawClient.open(port, version);
    client.send({ cmd: "connect", clientId: "raw", clean: true, keepalive: 0, ...fields });
    await client.next("connack");
    return client;
  }

  send(packet: object): void {
    const filled = { protocolId: "MQTT", protocolVersion: this.#version, ...packet };
    this.#socket.write(mqttPacket.generate(filled as Packet, { protocolVersion: this.#version })); // the test gives the fields
  }

  sendBytes(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  async nextAny(): Promise<Packet> {
    const known = this.packets[this.#taken];
    this.#waiting = createDeferred();
    const packet = known ?? (await this.#waiting.promise);
    this.#taken += 1;
    return packet;
  }

  /** The next packet, which must be a `cmd`. */
  async next<Command extends Packet["cmd"]>(cmd: Command): Promise<Extract<Packet, { cmd: Command }>> {
    const packet = await this.nextAny();
    if (packet.cmd !== cmd) throw new Error(`${packet.cmd} came in place of ${cmd}: ${JSON.stringify(packet)}`);
    return packet as Extract<Packet, { cmd: Command }>; // compared above
  }

  /** Ends its side, but still reads. */
  finish(): void {
    this.#socket.end();
  }

  pause(): void {
    this.#socket.pause();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
