import { expect, it } from "vitest";
import type { ClientFrame, Version } from "./frame.ts";
import { FrameError } from "./frame-error.ts";
import { type FrameLimits, FrameParser } from "./frame-parser.ts";
import { usedBytes } from "../../../lib/testing/collect-garbage.ts";

const limits: FrameLimits = { headBytesMax: 1_000, headersMax: 10, bodyBytesMax: 100 };

interface Plain {
  readonly command: string;
  readonly headers: ClientFrame["headers"];
  readonly body: string;
}

interface ReadOptions {
  readonly version?: Version;
  /** Bytes of each chunk. */
  readonly cut?: number;
}

function read(input: string | Buffer, { version, cut = Number.POSITIVE_INFINITY }: ReadOptions = {}): readonly Plain[] {
  const parser = new FrameParser(limits);
  if (version !== undefined) parser.use(version);
  const frames: Plain[] = [];
  const bytes = Buffer.from(input);
  for (let from = 0; from < bytes.length; from += cut) {
    parser.push(bytes.subarray(from, from + cut), ({ command, headers, body }) => {
      frames.push({ command, headers, body: body.toString("latin1") });
      return true;
    });
  }
  expect(parser.heldBytes).toBeLessThanOrEqual(2 * parser.pendingBytes);
  return frames;
}

function errorOf(input: string | Buffer, options?: ReadOptions): FrameError {
  try {
    read(input, options);
  } catch (error) {
    if (error instanceof FrameError) return error;
    throw error;
  }
  throw new Error("no error");
}

it("quotes no line of a CONNECT, which may be a part of its passcode", () => {
  expect(errorOf("CONNECT\npasscode:first\nsecret\n\n\0").message).not.toContain("secret");
});

it("frees the bytes of a frame that was taken, even if the consumer takes no further frame", () => {
  const parser = new FrameParser(limits);
  parser.push(Buffer.from("SEND\n\nx\0"), () => false);
  expect(parser.heldBytes).toBe(0);
});

it.each([1, 2, 3, 7, 1_000])("reads the same frames from chunks of %i bytes", (cut) => {
  const input =
    "\n\r\nSEND\na:1\ncontent-length:5\n\n\0\n\0\nx\0\n\nSEND\r\na:2\r\n\r\nbody\0\r\nDISCONNECT\n\n\0BEGIN\ntransaction:1\n\n\0";
  expect(read(input, { version: "1.2", cut })).toEqual([
    {
      command: "SEND",
      headers: [
        ["a", "1"],
        ["content-length", "5"],
      ],
      body: "\0\n\0\nx",
    },
    { command: "SEND", headers: [["a", "2"]], body: "body" },
    { command: "DISCONNECT", headers: [], body: "" },
    { command: "BEGIN", headers: [["transaction", "1"]], body: "" },
  ]);
});

it.each([
  ["1.0", String.raw`a\nb\c\\\r:c\t: x `, [[String.raw`a\nb\c\\\r`, String.raw`c\t: x`]]],
  ["1.1", String.raw`a\nb\c\\: x `, [["a\nb:\\", " x "]]],
  ["1.2", String.raw`a\nb\c\\\r: x `, [["a\nb:\\\r", " x "]]],
  ["1.2", String.raw`a:\\n\\c`, [["a", String.raw`\n\c`]]],
  ["1.2", "a:b:c", [["a", "b:c"]]],
  ["1.1", "a:b\r", [["a", "b\r"]]],
  ["1.2", "a:b\r", [["a", "b"]]],
  ["1.2", "\u00e4:\u20ac", [["\u00e4", "\u20ac"]]],
  ["1.2", "a:", [["a", ""]]],
] as const)("reads headers by the rules of %s: %j", (version, line, headers) => {
  expect(read(`SEND\n${line}\n\n\0`, { version })).toEqual([{ command: "SEND", headers, body: "" }]);
});

it.each([
  [
    "CONNECT",
    "accept-version:1.2\nlogin:a\\c: b ",
    [
      ["accept-version", "1.2"],
      ["login", "a\\c: b "],
    ],
  ],
  [
    "STOMP",
    "accept-version:1.1\r\nhost:x\r",
    [
      ["accept-version", "1.1"],
      ["host", "x"],
    ],
  ],
  [
    "CONNECT",
    "login: a\npasscode: b ",
    [
      ["login", "a"],
      ["passcode", "b"],
    ],
  ],
] as const)("reads the headers of %s without escapes, and trims those of 1.0: %j", (command, lines, headers) => {
  expect(read(`${command}\n${lines}\n\n\0`)).toEqual([{ command, headers, body: "" }]);
});

it.each([
  ["1.1", String.raw`a:\r`, /\\r/],
  ["1.1", String.raw`a:\t`, /\\t/],
  ["1.2", String.raw`a:\t`, /\\t/],
  ["1.2", "a:\\", /escape/],
  ["1.2", String.raw`\x:b`, /\\x/],
  ["1.2", "a:b\rc", /carriage return/],
  ["1.2", "a", /not a header/],
  ["1.2", ":b", /not a header/],
  ["1.2", "a:b\0", /NUL/],
  ["1.2", Array.from({ length: 11 }, (_, index) => `a${index}:b`).join("\n"), /more than 10 headers/],
  ["1.2", `a:${"b".repeat(1_000)}`, /more than 1000 bytes/],
  ["1.2", "content-length:-1", /not a number/],
  ["1.2", "content-length:1e1", /not a number/],
  ["1.2", "content-length:101", /more than 100 bytes/],
] as const)("refuses in %s the header line %j", (version, line, message) => {
  for (const cut of [1, 1_000_000]) expect(errorOf(`SEND\n${line}\n\n\0`, { version, cut }).message).toMatch(message);
});

it.each([
  ["an unknown command", "HELLO\n\n\0", /not a command/],
  ["a command in small letters", "send\n\n\0", /not a command/],
  ["another protocol", "GET / HTTP/1.1\r\n", /not a frame/],
  ["bytes of TLS", Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 7, 7, 7]), /TLS handshake/],
  ["a NUL between frames", "\0", /NUL/],
  ["headers that do not end", "DISCONNECT\nreceipt:7\n\0", /NUL/],
  ["bad UTF-8", Buffer.from([...Buffer.from("SEND\na:"), 0xc3, 0x28, 10, 10, 0]), /UTF-8/],
  ["overlong UTF-8", Buffer.from([...Buffer.from("SEND\na:"), 0xc0, 0x80, 10, 10, 0]), /UTF-8/],
  ["a long body without length", `SEND\n\n${"x".repeat(101)}`, /more than 100 bytes/],
  ["a body that is longer than content-length says", "SEND\ncontent-length:1\n\nxx\0", /no NUL/],
  ["a body of a frame that has none", "BEGIN\ntransaction:1\n\nx\0", /must not have a body/],
] as const)("refuses %s", (_, input, message) => {
  for (const cut of [1, 1_000_000]) expect(errorOf(input, { version: "1.2", cut }).message).toMatch(message);
});

it.each([
  ["a body that is too long", "SEND\nreceipt:7\ncontent-length:101\n\n"],
  ["a body of a frame that has none", "BEGIN\nreceipt:7\n\nx\0"],
  ["an undefined escape", "SEND\na:\\t\nreceipt:7\n\n"],
  ["headers that do not end", "SEND\nreceipt:7\na:b\0"],
  ["a NUL in a header", "SEND\nreceipt:7\na:\0\n\n"],
  ["bad UTF-8", Buffer.concat([Buffer.from("SEND\nreceipt:7\na:"), Buffer.of(0xc3, 0x28), Buffer.from("\n\n\0")])],
  ["too many headers", `SEND\nreceipt:7\n${"a:b\n".repeat(11)}`],
  ["a head that is too long", `SEND\nreceipt:7\na:${"b".repeat(1_000)}`],
  ["an unknown command", "HELLO\nreceipt:7\n\n\0"],
  ["a carriage return in a header", "SEND\na:b\rc\nreceipt:7\n\n\0"],
])("names the receipt of a refused frame: %s", (_, input) => {
  for (const cut of [1, 1_000_000]) expect(errorOf(input, { version: "1.2", cut }).receipt).toBe("7");
});

it.each([
  ["1.2", "SEND\nreceipt:a\\cb\nx:\\t\n\n\0", "a:b"],
  ["1.0", "SEND\nreceipt: 7\nx\n\n\0", "7"],
  ["1.2", "SEND\nreceipt:\\t\n\n\0", undefined],
  ["1.2", "SEND\nreceipt:a\0\n\n\0", undefined],
] as const)("decodes the receipt of a refused frame of %s: %j", (version, input, receipt) => {
  expect(errorOf(input, { version }).receipt).toBe(receipt);
});

it("accepts in 1.0 a body of a frame that needs none", () => {
  expect(read("CONNECT\nlogin: a\n\nhello\0", {})[0]).toMatchObject({ command: "CONNECT", body: "hello" });
  expect(read("BEGIN\ntransaction:1\n\nhello\0", { version: "1.0" })[0]).toMatchObject({ command: "BEGIN" });
});

it("stops when the consumer returns false, and resume continues with the next frame", () => {
  const parser = new FrameParser(limits);
  const taken: string[] = [];
  const take = ({ command }: ClientFrame): boolean => {
    taken.push(command);
    return false;
  };
  parser.push(Buffer.from("CONNECT\n\n\0BEGIN\n\n\0ABO"), take);
  expect(taken).toEqual(["CONNECT"]);
  parser.use("1.2");
  parser.push(Buffer.from("RT\n\n\0"), take);
  parser.resume(take);
  parser.resume(take);
  expect(taken).toEqual(["CONNECT", "BEGIN", "ABORT"]);
});

it("reads a large head and body that come byte by byte", () => {
  const parser = new FrameParser({ headBytesMax: 2 ** 16, headersMax: 1_000, bodyBytesMax: 2 ** 18 });
  const input = Buffer.from(`SEND\n${"a:b\n".repeat(999)}c:${"d".repeat(50_000)}\n\n${"x".repeat(2 ** 17)}\0`);
  let found = 0;
  for (let from = 0; from < input.length; from += 1) {
    parser.push(input.subarray(from, from + 1), ({ body }) => {
      found = body.length;
      return true;
    });
  }
  expect(found).toBe(2 ** 17);
});

it.each<[Version, string]>([
  ["1.2", `receipt:a-receipt-of-some-length\nother:${"x".repeat(60_000)}`],
  ["1.0", `receipt:${" ".repeat(60_000)}a-receipt-of-some-length`],
  ["1.0", `receipt${" ".repeat(60_000)}:a-receipt-of-some-length`],
])("a header of %s does not keep its whole frame in memory (%#)", (version, lines) => {
  const parser = new FrameParser({ headBytesMax: 2 ** 16, headersMax: 10, bodyBytesMax: 0 });
  parser.use(version);
  const kept: string[] = [];
  const input = Buffer.from(`BEGIN\n${lines}\n\n\0`);
  const before = usedBytes();
  for (let count = 0; count < 200; count += 1) {
    parser.push(
      Buffer.from(input),
      ({ headers }) => kept.push(...headers.flat().filter((text) => text.length < 100)) > 0,
    );
  }
  expect(kept.filter((text) => text === "a-receipt-of-some-length")).toHaveLength(200);
  expect(usedBytes() - before).toBeLessThan(2_000_000); // not 12 MB
});
