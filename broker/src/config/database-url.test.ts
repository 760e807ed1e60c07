import { expect, test } from "vitest";
import { databaseName, holdsPassword, isDatabaseUrl } from "./database-url.ts";

test.each([
  ["", true],
  ["postgres://db.internal/stele", true],
  ["postgresql://stele:pa%40ss@db.internal:5432/stele?sslmode=verify-full", true],
  ["postgres://stele@%2Fvar%2Frun%2Fpostgresql:5432/stele", true],
  ["postgres:///stele?host=/var/run/postgresql", true],
  ["mysql://stele:secret@db/stele", false],
  ["db.internal:5432", false],
  ["host=db user=stele", false],
  // Each has a password with an unencoded separator, which would cut the password short.
  ["postgres://stele:12/34@db.internal/stele", false],
  ["postgres://stele:12?34@db.internal/stele", false],
  ["postgres://stele:12#34@db.internal/stele", false],
  ["postgres://stele:secret@db.internal/stele#", false],
])("accepts the address %s: %s", (text, isSound) => {
  expect(isDatabaseUrl(text)).toBe(isSound);
  if (!isSound) expect(databaseName(text)).toBe("…");
});

test.each([
  "postgres://",
  "postgres:///",
  "postgres:///stele",
  "postgres:///stele?host=",
  "postgres://db.internal",
  "postgres://db.internal/",
  "postgres://db.internal:5432?sslmode=require",
  "postgres://?host=/var/run/postgresql",
])("refuses %s, which names no host or no database", (text) => {
  expect(isDatabaseUrl(text)).toBe(false);
});

test.each([
  ["postgres://db.internal/stele", "postgres://db.internal/stele", false],
  ["postgres://stele:hunter2@db.internal:5433/stele", "postgres://…@db.internal:5433/stele", true],
  ["postgres://db/stele?user=stele&password=hunter2", "postgres://db/stele?…", true],
  ["postgresql://stele@db/stele?sslmode=require", "postgresql://…@db/stele?…", false],
])("shows %s as %s", (text, shown, holds) => {
  expect(databaseName(text)).toBe(shown);
  expect(holdsPassword(text)).toBe(holds);
});

test("hides a value that is not a string", () => {
  expect(databaseName({ password: "hunter2" })).toBe("…");
});
