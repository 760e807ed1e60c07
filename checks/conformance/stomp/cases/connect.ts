import { expect } from "vitest";
import { until } from "../../../harness/until.ts";
import { type Case, only, since11 } from "../case.ts";

export const connectCases: readonly Case[] = [
  {
    name: "CONNECT is answered by CONNECTED with the version, a server name and a unique session",
    covers: { "1.0": ["connect-1", "connect-2", "frame-1"], ...since11("connected-1", "connected-2") },
    run: async (context) => {
      const sessions: (string | undefined)[] = [];
      for (let count = 0; count < 2; count += 1) {
        const peer = await context.open();
        peer.send("CONNECT", context.hello);
        const { headers, body } = await peer.next("CONNECTED");
        if (context.version !== "1.0") expect(headers["version"]).toBe(context.version);
        expect(headers["server"]).toMatch(/^[^\s/]+(\/[^\s/]+)?/);
        expect(body).toHaveLength(0);
        sessions.push(headers["session"]);
        await peer.expectQuiet();
      }
      expect(new Set(sessions).size).toBe(2);
      expect(sessions[0]).toMatch(/./);
    },
  },
  {
    name: "a STOMP frame is handled as CONNECT",
    covers: since11("connect-3"),
    run: async (context) => {
      const peer = await context.open();
      peer.send("STOMP", context.hello);
      expect((await peer.next("CONNECTED")).headers["version"]).toBe(context.version);
    },
  },
  {
    name: "a CONNECT without accept-version gets version 1.0",
    covers: { "1.0": ["connect-1"], ...since11("negotiation-1") },
    run: async (context) => {
      const peer = await context.open();
      peer.send("CONNECT", { login: "a", passcode: "b" });
      expect((await peer.next("CONNECTED")).headers["version"] ?? "1.0").toBe("1.0");
    },
  },
  {
    name: "the highest version in common is used",
    covers: since11("negotiation-2"),
    run: async (context) => {
      const peer = await context.open();
      const list = context.version === "1.1" ? "1.0,1.1,2.0" : "1.0,1.1,1.2,2.0";
      peer.send("CONNECT", { "accept-version": list, host: "localhost" });
      expect((await peer.next("CONNECTED")).headers["version"]).toBe(context.version);
    },
  },
  {
    name: "a CONNECT without a common version gets an ERROR with the server's versions",
    covers: since11("negotiation-3", "error-1"),
    run: async (context) => {
      const peer = await context.open();
      peer.send("CONNECT", { "accept-version": "2.0,2.1", host: "localhost" });
      expect((await peer.expectRefused()).headers["version"]).toContain("1.2");
    },
  },
  {
    name: "a SEND before CONNECT gets an ERROR",
    covers: { "1.0": ["connect-1"], ...since11("error-1") },
    run: async (context) => {
      const peer = await context.open();
      peer.send("SEND", { destination: context.topic }, "early");
      await peer.expectRefused();
    },
  },
  {
    name: "a CONNECT may name any host, or none",
    covers: since11("connect-2"),
    run: async (context) => {
      for (const host of [{ host: "elsewhere" }, { host: "" }, {}]) {
        const peer = await context.open();
        peer.send("CONNECT", { "accept-version": context.version, ...host });
        expect((await peer.next("CONNECTED")).headers["version"]).toBe(context.version);
      }
    },
  },
  {
    name: "a second CONNECT gets an ERROR",
    covers: { "1.0": ["connect-1"], ...since11("error-1") },
    run: async (context) => {
      await context.expectError((peer) => peer.send("CONNECT", context.hello));
    },
  },
  {
    name: "CONNECT has no escapes: a backslash is a backslash",
    covers: since11("encoding-4"),
    run: async (context) => {
      for (const command of ["CONNECT", "STOMP"]) {
        const peer = await context.open();
        peer.send(command, { ...context.hello, login: "a\\tb\\", passcode: "x:y" });
        await peer.next("CONNECTED");
        await peer.expectQuiet();
      }
    },
  },
  {
    name: "clients that connect and disconnect rapidly are all answered",
    covers: since11("connect-1"),
    run: async (context) => {
      for (let count = 0; count < 10; count += 1) {
        const peer = await context.connect();
        if (count % 2 === 0) peer.drop();
        else {
          await peer.ask("DISCONNECT");
          await peer.expectClosed();
        }
      }
      await (await context.connect()).expectQuiet();
    },
  },
  {
    name: "lines of a 1.2 frame may end with a carriage return and a line feed",
    covers: only("1.2", "frame-1"),
    run: async (context) => {
      const peer = await context.open();
      peer.sendBytes("CONNECT\r\naccept-version:1.2\r\nhost:localhost\r\n\r\n\0\r\n\r\n");
      expect((await peer.next("CONNECTED")).headers["version"]).toBe("1.2");
      const body = "\r\nbody\r\n";
      peer.sendBytes(`SUBSCRIBE\r\nid:1\r\ndestination:${context.topic}\r\n\r\n\0\r\n`);
      peer.sendBytes(`SEND\r\ndestination:${context.topic}\r\nreceipt:crlf\r\n\r\n${body}\0`);
      await peer.receipt("crlf");
      expect(await context.take(peer, 1)).toEqual([body]);
    },
  },
  {
    name: "a heart-beat that is not two numbers gets an ERROR",
    covers: since11("beat-1"),
    run: async (context) => {
      for (const value of ["1000", "a,b", "-1,0", "1,2,3", ""]) {
        const peer = await context.open();
        peer.send("CONNECT", { ...context.hello, "heart-beat": value });
        await peer.expectRefused();
      }
    },
  },
  {
    name: "without a heart-beat header, the broker sends no heart-beats and does not close a silent connection",
    covers: since11("beat-2"),
    run: async (context) => {
      const peer = await context.connect();
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      expect(peer.reader.beats).toBe(0);
      await peer.expectQuiet();
    },
  },
  {
    name: "a client that wants heart-beats gets a newline in each interval",
    covers: since11("beat-3", "beat-4"),
    run: async (context) => {
      const peer = await context.open();
      peer.send("CONNECT", { ...context.hello, "heart-beat": "0,300" });
      const [sends] = ((await peer.next("CONNECTED")).headers["heart-beat"] ?? "").split(",").map(Number);
      expect(sends).toBeGreaterThan(0);
      await until("three heart-beats have come", () => peer.reader.beats >= 3);
    },
  },
];
