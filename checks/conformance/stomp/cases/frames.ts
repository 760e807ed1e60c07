import { expect } from "vitest";
import { type Case, inAll, only, since11 } from "../case.ts";
import type { Context } from "../context.ts";
import type { Peer } from "../peer.ts";

/** Longer than the broker accepts for the headers of one frame. */
const longHeader = "x".repeat(1024 * 1024);

/**
 * Sends a frame. The broker accepts at most `acceptedMax` bytes of it. A client that writes byte by byte does so only around this limit, and then stops:
 * a million writes would show nothing more. Other clients send the whole frame, in pieces that fit into a WebSocket message.
 */
function sendTooLong(context: Context, peer: Peer, { text, acceptedMax }: { text: string; acceptedMax: number }): void {
  if (context.isSlow) {
    peer.sendPiece(text.slice(0, acceptedMax - 100));
    peer.sendBytes(text.slice(acceptedMax - 100, acceptedMax + 100));
    return;
  }
  for (let at = 0; at < text.length; at += 10_000) peer.sendPiece(text.slice(at, at + 10_000));
}

export const frameCases: readonly Case[] = [
  {
    name: "a body with NULs is delivered whole, with its content-length",
    covers: { "1.0": ["length-1", "length-3", "message-3"], ...since11("length-1", "length-2", "length-3") },
    run: async (context) => {
      const peer = await context.subscribed();
      const body = Buffer.from([0, 1, 0, 255, 10, 0]);
      await context.publish(body);
      const message = await peer.next("MESSAGE");
      expect(message.headers["content-length"]).toBe("6");
      expect(message.body.equals(body)).toBe(true);
    },
  },
  {
    name: "without content-length the first NUL ends the frame",
    covers: { "1.0": ["length-2", "frame-2"], ...since11("length-3") },
    run: async (context) => {
      const peer = await context.subscribed();
      await peer.ask("SEND", { destination: context.topic }, "one");
      expect(await context.take(peer, 1)).toEqual(["one"]);
      peer.sendBytes("\n\n\n");
      await peer.ask("SEND", { destination: context.topic }, "two");
      expect(await context.take(peer, 1)).toEqual(["two"]);
    },
  },
  {
    name: "a frame without a NUL after its content-length gets an ERROR",
    covers: { "1.0": ["length-3"], ...since11("length-3", "error-1", "error-2") },
    run: async (context) => {
      const head = `SEND\ndestination:${context.topic}\ncontent-length:2\nreceipt:7\n\n`;
      const error = await context.expectError((peer) => peer.sendBytes(`${head}long\0`));
      expect(error.headers["receipt-id"]).toBe("7");
    },
  },
  {
    name: "a frame without a body may have content-length 0",
    covers: { "1.0": ["length-1"], ...since11("length-2") },
    run: async (context) => {
      const peer = await context.connect({ "content-length": "0" });
      await peer.ask("BEGIN", { transaction: "t", "content-length": "0" });
      await peer.ask("ABORT", { transaction: "t", "content-length": "0" });
    },
  },
  {
    name: "a content-length that is not a number gets an ERROR",
    covers: { "1.0": ["length-1"], ...since11("length-2") },
    run: async (context) => {
      for (const length of ["-1", "1e1", "0x1", "a", "99999999999999999999"]) {
        await context.expectError((peer) =>
          peer.send("SEND", { destination: context.topic, "content-length": length }),
        );
      }
    },
  },
  {
    name: "headers keep colons, line feeds, backslashes and text of any language",
    covers: since11("encoding-1", "encoding-3", "type-1", "send-2"),
    run: async (context) => {
      const peer = await context.subscribed();
      const headers: Record<string, string> = { "svc-a:b": "x:y\nz\\c\\", user: "größer: 🙂\n日本" };
      if (context.version === "1.2") headers["svc-return"] = "a\r\nb";
      await context.publish("x", headers);
      expect((await peer.next("MESSAGE")).headers).toMatchObject(headers);
    },
  },
  {
    name: "headers are encoded for the version of each receiver: a 1.0 client without escapes gets the same values",
    covers: since11("encoding-1", "encoding-3"),
    run: async (context) => {
      const plain = await context.connectPlainly();
      await plain.ask("SUBSCRIBE", { destination: context.topic });
      const headers = { "svc-a": "x:y\\z\\n" };
      await context.publish("escaped", { ...headers, "svc-b": "a\nb" });
      const seen = (await plain.next("MESSAGE")).headers;
      expect(seen).toMatchObject(headers);
      expect(seen).not.toHaveProperty("svc-b"); // 1.0 has no form for a line feed
      const peer = await context.subscribed();
      await plain.ask("SEND", { destination: context.topic, ...headers }, "plain");
      expect((await peer.next("MESSAGE")).headers).toMatchObject(headers);
    },
  },
  {
    name: "a STOMP 1.0 header has no escapes: a backslash is a backslash",
    covers: only("1.0", "message-3"),
    run: async (context) => {
      const peer = await context.subscribed();
      await context.publish("x", { "svc-path": "C:\\new\\t" });
      expect((await peer.next("MESSAGE")).headers["svc-path"]).toBe("C:\\new\\t");
    },
  },
  {
    name: "an undefined escape gets an ERROR",
    covers: since11("encoding-2", "error-1"),
    run: async (context) => {
      const undefinedEscapes = ["\\t", "\\x", "\\N", "\\", ...(context.version === "1.1" ? ["\\r"] : [])];
      for (const escape of undefinedEscapes) {
        for (const line of [`a:${escape}`, `${escape}a:b`]) {
          await context.expectError((peer) => peer.sendBytes(`SEND\ndestination:${context.topic}\n${line}\n\nx\0`));
        }
      }
    },
  },
  {
    name: "spaces around a header belong to it",
    covers: since11("padding-1"),
    run: async (context) => {
      const peer = await context.subscribed();
      await context.publish("x", { "svc-padded": "  value ", "svc-name ": "v" });
      const { headers } = await peer.next("MESSAGE");
      expect(headers["svc-padded"]).toBe("  value ");
      expect(headers["svc-name "]).toBe("v");
    },
  },
  {
    name: "spaces around a STOMP 1.0 header are ignored",
    covers: only("1.0", "send-1"),
    run: async (context) => {
      const peer = await context.subscribed();
      peer.sendBytes(`SEND\ndestination: ${context.topic} \nreceipt: padded\n\nx\0`);
      await peer.receipt("padded");
      expect(await context.take(peer, 1)).toEqual(["x"]);
    },
  },
  {
    name: "of repeated headers the first wins",
    covers: since11("repeated-1"),
    run: async (context) => {
      const peer = await context.subscribed();
      const { topic } = context;
      peer.send(
        "SEND",
        [
          ["destination", topic],
          ["destination", `${topic}/other`],
          ["svc-foo", "World"],
          ["svc-foo", "Hello"],
          ["receipt", "first"],
          ["receipt", "second"],
        ],
        "x",
      );
      await peer.receipt("first");
      expect((await peer.next("MESSAGE")).headers).toMatchObject({ "svc-foo": "World", destination: topic });
    },
  },
  {
    name: "a body in a frame that may not have one gets an ERROR",
    covers: since11("body-1"),
    run: async (context) => {
      const commands = ["SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT", "DISCONNECT"];
      for (const command of commands) {
        const headers = { id: "1", destination: context.topic, transaction: "t", receipt: "body" };
        const error = await context.expectError((peer) => peer.send(command, headers, "body"));
        expect(error.headers["receipt-id"]).toBe("body");
      }
      for (const command of ["CONNECT", "STOMP"]) {
        const peer = await context.open();
        peer.send(command, context.hello, "body");
        await peer.expectRefused();
      }
    },
  },
  {
    name: "the body of a STOMP 1.0 SUBSCRIBE is ignored",
    covers: only("1.0", "subscribe-5"),
    run: async (context) => {
      const peer = await context.connect();
      await peer.ask("SUBSCRIBE", { destination: context.topic, id: "1" }, "body");
      await context.publish("x");
      expect(await context.take(peer, 1)).toEqual(["x"]);
    },
  },
  {
    name: "an unknown command gets an ERROR",
    covers: inAll("error-1"),
    run: async (context) => {
      for (const command of ["send", "MESSAGE", "RECEIPT", "PUBLISH", ""]) {
        await context.expectError((peer) => peer.sendBytes(`${command}\ndestination:${context.topic}\n\n\0`));
      }
    },
  },
  {
    name: "malformed headers get an ERROR",
    covers: inAll("error-1"),
    run: async (context) => {
      for (const line of ["destination", ":value", "a\0b:c"]) {
        await context.expectError((peer) => peer.sendBytes(`SEND\n${line}\n\n\0`));
      }
      await context.expectError((peer) =>
        peer.sendBytes(Buffer.from([...Buffer.from("SEND\na:"), 0xff, 0x0a, 0x0a, 0])),
      );
    },
  },
  {
    name: "headers over a limit get an ERROR, even before the frame ends",
    covers: { "1.0": ["error-1"], ...since11("limits-1") },
    run: async (context) => {
      const receipt = "receipt:long\n";
      const tooLong = [
        { text: `SEND\n${receipt}destination:${context.topic}\nlong:${longHeader}\n\n\0`, acceptedMax: 64 * 1024 },
        { text: `SEND\n${receipt}long:${longHeader}`, acceptedMax: 64 * 1024 },
        { text: `SEND\n${receipt}${"a:b\n".repeat(10_000)}`, acceptedMax: 4 * 1_000 },
      ];
      for (const one of tooLong) {
        const error = await context.expectError((peer) => sendTooLong(context, peer, one));
        expect(error.headers["receipt-id"]).toBe("long");
      }
    },
  },
  {
    name: "a body that is too long gets an ERROR before it arrives",
    covers: { "1.0": ["error-1"], ...since11("limits-1", "send-3") },
    run: async (context) => {
      const head = `SEND\ndestination:${context.topic}\ncontent-length:999999999\nreceipt:1\n\n`;
      const error = await context.expectError((peer) => peer.sendBytes(head));
      expect(error.headers["receipt-id"]).toBe("1");
    },
  },
];
