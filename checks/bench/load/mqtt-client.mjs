import { connect } from "node:net";

const connack = 2;
const publish = 3;
const puback = 4;
const suback = 9;
const keepAliveSeconds = 0;

/**
 * One MQTT 3.1.1 connection over a bare socket, with only the packets that the loads need. A client library would use more processor time than the
 * servers under test.
 */
export class MqttClient {
  /** Called with the number of PUBLISH packets in each chunk of bytes, after their acknowledgements (QoS 1) were written. */
  onDeliveries = () => {};
  /** Called with the packet identifiers of the PUBACK packets in each chunk of bytes. */
  onAcknowledged = () => {};
  /** Called once if the connection ends before {@link end}. */
  onFailed = () => {};
  #socket;
  #rest = Buffer.alloc(0);
  #answered;
  #isEnded = false;

  /** Resolves when the server has accepted the connection. */
  async open({ port, clientId, socket = connect({ host: "127.0.0.1", port, noDelay: true }) }) {
    this.#socket = socket;
    this.#socket.on("data", (chunk) => this.#receive(chunk));
    const answered = this.#nextAnswer();
    this.#socket.once("connect", () => this.write(toConnect(clientId)));
    this.#socket.on("error", () => this.#fail());
    this.#socket.on("close", () => this.#fail());
    const { code } = await answered;
    if (code !== 0) throw new Error(`CONNECT was refused with ${code}`);
  }

  async subscribe(filter, qos) {
    const answered = this.#nextAnswer();
    this.write(toSubscribe(filter, qos));
    const { code } = await answered;
    if (code !== qos) throw new Error(`SUBSCRIBE was answered with ${code}`);
  }

  write(bytes) {
    this.#socket.write(bytes);
  }

  end() {
    this.#isEnded = true;
    this.#socket.destroy();
  }

  /** The next CONNACK or SUBACK. */
  #nextAnswer() {
    return new Promise((resolve, reject) => {
      this.#answered = { resolve, reject };
    });
  }

  #fail() {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#answered?.reject(new Error("The server closed a connection."));
    this.onFailed();
  }

  #receive(chunk) {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const acknowledged = [];
    const unacknowledged = [];
    let deliveries = 0;
    let at = 0;
    for (;;) {
      const body = findBody(bytes, at);
      if (body === undefined) break;
      const first = bytes[at];
      const type = first >> 4;
      if (type === publish) {
        deliveries += 1;
        if ((first & 0x06) !== 0)
          unacknowledged.push(bytes.readUInt16BE(body.start + 2 + bytes.readUInt16BE(body.start)));
      } else if (type === puback) acknowledged.push(bytes.readUInt16BE(body.start));
      else if (type === connack) this.#answered.resolve({ code: bytes[body.start + 1] });
      else if (type === suback) this.#answered.resolve({ code: bytes[body.start + 2] });
      else throw new Error(`The server sent a packet of type ${type}.`);
      at = body.end;
    }
    this.#rest = bytes.subarray(at);
    if (unacknowledged.length > 0) this.write(toPubacks(unacknowledged));
    if (deliveries > 0) this.onDeliveries(deliveries);
    if (acknowledged.length > 0) this.onAcknowledged(acknowledged);
  }
}

/** Makes PUBLISH packets for one topic, each with different content of `contentBytes` bytes. */
export class PublishPackets {
  #packet;
  #qos;
  #identifierAt;
  #contentAt;
  #count = 0;

  /** @param {{ readonly topic: string, readonly contentBytes: number, readonly qos: 0 | 1 }} options */
  constructor({ topic, contentBytes, qos }) {
    const head = [toText(topic), ...(qos === 0 ? [] : [Buffer.alloc(2)])];
    const content = Buffer.alloc(contentBytes, "0123456789abcdef");
    this.#packet = toPacket((publish << 4) | (qos << 1), [...head, content]);
    this.#qos = qos;
    this.#contentAt = this.#packet.length - contentBytes;
    this.#identifierAt = this.#contentAt - 2;
  }

  /** The next `count` packets, in one buffer. Identifiers count from 1 to 65,535 and then from 1 again. */
  next(count) {
    const { length } = this.#packet;
    const bytes = Buffer.allocUnsafe(count * length);
    for (let index = 0; index < count; index += 1) {
      const at = index * length;
      this.#packet.copy(bytes, at);
      bytes.writeUInt32BE(this.#count, at + this.#contentAt);
      if (this.#qos > 0) bytes.writeUInt16BE(identifierOf(this.#count), at + this.#identifierAt);
      this.#count += 1;
    }
    return bytes;
  }

  /** The identifier of the next packet. */
  get nextIdentifier() {
    return identifierOf(this.#count);
  }
}

function identifierOf(count) {
  return (count % 65_535) + 1;
}

/** Start and end of the body of the packet at `at`; undefined while the packet is incomplete. */
function findBody(bytes, at) {
  let length = 0;
  for (let index = at + 1, factor = 1; index < bytes.length; index += 1, factor *= 128) {
    length += (bytes[index] & 0x7f) * factor;
    if ((bytes[index] & 0x80) !== 0) continue;
    const end = index + 1 + length;
    return end <= bytes.length ? { start: index + 1, end } : undefined;
  }
  return undefined;
}

function toConnect(clientId) {
  const cleanSession = 2;
  const level = 4;
  const flags = Buffer.from([level, cleanSession, 0, keepAliveSeconds]);
  return toPacket(0x10, [toText("MQTT"), flags, toText(clientId)]);
}

function toSubscribe(filter, qos) {
  return toPacket(0x82, [Buffer.from([0, 1]), toText(filter), Buffer.from([qos])]);
}

function toPubacks(identifiers) {
  const bytes = Buffer.allocUnsafe(4 * identifiers.length);
  let at = 0;
  for (const identifier of identifiers) {
    at = bytes.writeUInt16BE(0x4002, at);
    at = bytes.writeUInt16BE(identifier, at);
  }
  return bytes;
}

function toText(text) {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

function toPacket(first, fields) {
  const body = Buffer.concat(fields);
  const head = [first];
  for (let rest = body.length; ; rest = Math.floor(rest / 128)) {
    head.push((rest % 128) | (rest > 127 ? 0x80 : 0));
    if (rest <= 127) break;
  }
  return Buffer.concat([Buffer.from(head), body]);
}
