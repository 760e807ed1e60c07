import { describe, expect, it } from "vitest";
import { toFailure } from "./errors.ts";

const fromServer = (code: string, message = "said so", severity = "ERROR") =>
  Object.assign(new Error(message), { code, severity, detail: "Failing row contains (whsec_1)", where: "whsec_2" });
const fromSystem = (code: string) => Object.assign(new Error(`connect ${code} 10.0.0.1:5432`), { code });

describe("errors of PostgreSQL and of its driver", () => {
  it.each<[string, unknown, string, boolean]>([
    ["a server that stops", fromServer("57P01", "terminating", "FATAL"), "unavailable", true],
    ["a server that starts", fromServer("57P03", "starting up", "FATAL"), "unavailable", true],
    ["too many connections", fromServer("53300", "too many clients", "FATAL"), "unavailable", true],
    ["a statement that took too long", fromServer("57014"), "unavailable", false],
    ["a wait for a lock that took too long", fromServer("55P03"), "lock-timeout", false],
    ["a deadlock", fromServer("40P01"), "conflict", false],
    ["a serialization failure", fromServer("40001"), "conflict", false],
    ["a plan older than its table", fromServer("0A000"), "conflict", true],
    ["a standby", fromServer("25006"), "read-only", true],
    ["a full disk", fromServer("53100"), "full", false],
    ["damaged data", fromServer("XX001"), "corrupt", false],
    ["a wrong password", fromServer("28P01", "authentication failed", "FATAL"), "cannot-open", true],
    ["an unknown database", fromServer("3D000", "does not exist", "FATAL"), "cannot-open", true],
    ["a missing right", fromServer("42501"), "cannot-open", false],
    ["a duplicate key", fromServer("23505"), "other", false],
    ["a missing table", fromServer("42P01"), "other", false],
    ["a refused connection", fromSystem("ECONNREFUSED"), "unavailable", true],
    ["an unknown host name", fromSystem("ENOTFOUND"), "unavailable", true],
    ["a reset connection", fromSystem("ECONNRESET"), "unavailable", true],
    ["an untrusted certificate", fromSystem("SELF_SIGNED_CERT_IN_CHAIN"), "cannot-open", true],
    ["a certificate of another name", fromSystem("ERR_TLS_CERT_ALTNAME_INVALID"), "cannot-open", true],
    ["a server without TLS", new Error("The server does not support SSL connections"), "cannot-open", true],
    [
      "a missing password",
      new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string"),
      "cannot-open",
      true,
    ],
    ["a closed connection", new Error("Connection terminated unexpectedly"), "unavailable", true],
    ["a missing answer", new Error("Query read timeout"), "unavailable", true],
    ["a pool without a free connection", new Error("timeout exceeded when trying to connect"), "exhausted", true],
    ["an unknown error", new Error("odd"), "other", true],
    ["a thrown string", "odd", "other", true],
  ])("classifies %s, and names the database", (...[, thrown, fault, isConnectionLost]) => {
    const failure = toFailure(thrown, "PostgreSQL database db at host");
    expect(failure).toMatchObject({ error: { fault }, isConnectionLost });
    expect(failure.error.cause).toBeUndefined();
    expect(failure.error.message).toMatch(/^PostgreSQL database db at host/);
  });

  it("says where to put a missing password", () => {
    const { error } = toFailure(new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string"), "db");
    expect(error.message).toMatch(/^db refuses this user without a password: .* databaseUrl, .* databasePasswordFile/);
  });

  it("keeps only message and code, since details quote rows", () => {
    const { error } = toFailure(fromServer("23502", "null value in column"), "db");
    expect(error.message).toBe("db: PostgreSQL 23502: null value in column");
    expect(JSON.stringify(error) + String(error.stack)).not.toContain("whsec");
  });

  it("reports why the first of a host name's addresses could not be reached", () => {
    const error = Object.assign(new AggregateError([fromSystem("ECONNREFUSED")], ""), { code: "ECONNREFUSED" });
    expect(toFailure(error, "db").error.message).toBe(
      "db cannot be reached: check that it runs and that its address is right (ECONNREFUSED: connect ECONNREFUSED 10.0.0.1:5432)",
    );
  });
});
