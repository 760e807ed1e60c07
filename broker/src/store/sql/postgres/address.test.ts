import { describe, expect, it } from "vitest";
import { parsePostgresAddress } from "./address.ts";

describe("the address of a PostgreSQL database", () => {
  it.each<[string, string]>([
    ["postgres://u:p@host:5433/stele", "PostgreSQL database stele at host:5433"],
    ["postgresql://u:p@host/stele?sslmode=verify-full", "PostgreSQL database stele at host"],
    ["postgres://host", "PostgreSQL database at host"],
    ["postgres://u@%2Fvar%2Frun%2Fpg:5433/a%20b", "PostgreSQL database a b at /var/run/pg"],
    ["postgres:///stele?host=/var/run/pg", "PostgreSQL database stele at /var/run/pg"],
    ["postgres://u:p@[::1]:5432/stele", "PostgreSQL database stele at [::1]:5432"],
  ])("%s has the description %s", (text, description) => {
    expect(parsePostgresAddress(text).description).toBe(description);
  });

  it.each([
    ["postgres://u:p@host/stele", "prefer"],
    ["postgres://u:p@host/stele?sslmode=prefer", "prefer"],
    ["postgres://u:p@host/stele?sslmode=disable", "as-given"],
    ["postgres://u:p@host/stele?sslmode=verify-full", "as-given"],
    ["postgres:///stele?host=/var/run/pg&sslmode=require", "none"],
    ["postgres://u@%2Fvar%2Frun%2Fpg:5433/stele", "none"],
  ])("%s uses TLS: %s", (text, tls) => {
    expect(parsePostgresAddress(text).tls).toBe(tls);
  });

  it.each([
    "",
    "stele",
    "mysql://u:hunter2@host/db",
    "postgres://u:hunter2@host:port/db",
    "postgres://u:hunter2@ho st/db",
  ])("%s is refused with a message that shows no password", (text) => {
    const parse = () => parsePostgresAddress(text);
    expect(parse).toThrow(expect.objectContaining({ name: "StoreError", fault: "cannot-open" }));
    expect(parse).toThrow("postgres://user:password@host:5432/database");
    expect(parse).not.toThrow(/hunter2/);
  });

  it.each(["allow", "none"])("sslmode=%s is refused with the list of valid modes", (mode) => {
    const parse = () => parsePostgresAddress(`postgres://u:hunter2@host/db?sslmode=${mode}`);
    expect(parse).toThrow(/db at host has an sslmode .* disable, prefer, require, verify-ca, verify-full/);
    expect(parse).not.toThrow(/hunter2/);
  });
});
