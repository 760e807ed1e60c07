import { TLSSocket } from "node:tls";
import { Socket } from "node:net";
import { expect, it } from "vitest";
import { type Logger, silentLogger } from "../../../lib/logger.ts";
import { ClearTextReport, isClearText } from "./clear-text-report.ts";

/** A stream connected to the address. */
function streamTo(remoteAddress: string | undefined, kind: "clear" | "tls" = "clear"): Socket {
  const stream = kind === "tls" ? new TLSSocket(new Socket()) : new Socket();
  return Object.defineProperty(stream, "remoteAddress", { value: remoteAddress });
}

it.each([
  ["10.0.0.7", "clear", true],
  ["2001:db8::7", "clear", true],
  ["10.0.0.7", "tls", false],
  ["127.0.0.1", "clear", false],
  ["127.9.9.9", "clear", false],
  ["::1", "clear", false],
  ["::ffff:127.0.0.1", "clear", false],
  ["::ffff:10.0.0.7", "clear", true],
  [undefined, "clear", false],
] as const)("a connection to %s (%s) sends clear text to another machine: %s", (address, kind, expected) => {
  expect(isClearText(streamTo(address, kind))).toBe(expected);
});

it("warns about the first connection without TLS, and about the next one after a connection with TLS", () => {
  const lines: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (message) => void lines.push(message) };
  const report = new ClearTextReport(logger, "PostgreSQL database at db");
  for (const kind of ["clear", "clear", "tls", "tls", "clear"] as const) report.saw(streamTo("10.0.0.7", kind));
  expect(lines).toHaveLength(2);
});
