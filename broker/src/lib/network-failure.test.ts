import { expect, test } from "vitest";
import { isBeforeConnection, isPlainText } from "./network-failure.ts";

test.each([
  [{ code: "EHOSTUNREACH", syscall: "connect" }, true],
  [{ code: "ENOTFOUND", syscall: "getaddrinfo" }, true],
  [{ code: "UND_ERR_CONNECT_TIMEOUT" }, true],
  [{ code: "ERR_TLS_CERT_ALTNAME_INVALID" }, true],
  [{ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }, true],
  [{ code: "INVALID_CA" }, true],
  [{ code: "INVALID_PURPOSE" }, true],
  [{ code: "PATH_LENGTH_EXCEEDED" }, true],
  [{ code: "EHOSTUNREACH", syscall: "read" }, false],
  [{ code: "ENETUNREACH", syscall: "write" }, false],
  [{ code: "ECONNRESET", syscall: "read" }, false],
  [{ code: "UND_ERR_SOCKET" }, false],
])("isBeforeConnection returns for an error with %j: %j", (fields, isBefore) => {
  expect(isBeforeConnection(Object.assign(new Error("failed"), fields))).toBe(isBefore);
});

test("isBeforeConnection returns true if Node.js could connect to none of several addresses, even if an attempt timed out", () => {
  const timedOut = Object.assign(new Error("connect ETIMEDOUT"), { code: "ETIMEDOUT", syscall: "connect" });
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" });
  // Node.js gives the error the code of the first attempt, and no syscall.
  const all = Object.assign(new AggregateError([timedOut, refused]), { code: timedOut.code });
  expect(isBeforeConnection(all)).toBe(true);
});

// Which of the first two comes depends on the version of Node.js.
test.each([
  ["ERR_SSL_WRONG_VERSION_NUMBER", true],
  ["ERR_SSL_PACKET_LENGTH_TOO_LONG", true],
  ["ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE", false],
  [undefined, false],
])("isPlainText returns for the code %s: %j", (code, isPlain) => {
  expect(isPlainText(code)).toBe(isPlain);
});
