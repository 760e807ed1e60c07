// A name server on loopback that answers over UDP, for tests.
import { createSocket } from "node:dgram";
import { once } from "node:events";

const headerBytes = 12;
/** A record's bytes before its data: pointer to the name, type, class, lifetime, length (RFC 1035, section 4.1.3). */
const recordFixedBytes = 12;
const recordA = 1;
const recordAaaa = 28;
const classInternet = 1;
/** Flags: this is a response, recursion was desired, and recursion is available. */
const responseFlags = 0x8180;
const absentCode = 3;
const failureCode = 2;
/** Points to the name in the question. */
const questionPointer = 0xc00c;

export async function startDnsServer(zone) {
  const socket = createSocket("udp4");
  const questions = [];
  socket.on("message", (query, { address, port }) => {
    const question = readQuestion(query);
    questions.push(question.name);
    const entry = zone.get(question.name);
    if (entry !== "silent") socket.send(toResponse(query, question, entry), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    [Symbol.asyncDispose]: async () => {
      const closed = once(socket, "close");
      socket.close();
      await closed;
    },
  };
}

function readQuestion(query) {
  const labels = [];
  let at = headerBytes;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** Builds a response with the header, the question, and the record if there is one. */
function toResponse(query, { type, end }, entry) {
  const head = Buffer.from(query.subarray(0, end));
  const record = entry === undefined || entry === "fails" ? undefined : findRecord(type, entry);
  const code = entry === undefined ? absentCode : entry === "fails" ? failureCode : 0;
  head.writeUInt16BE(responseFlags + code, 2);
  head.writeUInt16BE(record === undefined ? 0 : 1, 6);
  head.fill(0, 8, headerBytes);
  return record === undefined ? head : Buffer.concat([head, record]);
}

function findRecord(type, address) {
  const isSix = address.includes(":");
  if (type !== (isSix ? recordAaaa : recordA)) return undefined;
  const data = isSix ? sixBytes(address) : Buffer.from(address.split(".").map(Number));
  const record = Buffer.alloc(recordFixedBytes);
  record.writeUInt16BE(questionPointer, 0);
  record.writeUInt16BE(type, 2);
  record.writeUInt16BE(classInternet, 4);
  record.writeUInt32BE(1, 6);
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([record, data]);
}

/** Bytes of an IPv6 address with one `::`. */
function sixBytes(address) {
  const [before = [], after = []] = address.split("::").map((half) => half.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, "0")).join(""), "hex");
}
