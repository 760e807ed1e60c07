import { chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { auditCommand } from "./audit.ts";

const other = 65_534;
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "audit-"))));
afterEach(() => rmSync(folder, { recursive: true }));

it.runIf(process.getuid?.() === 0).each([
  ["a new file to the owner of its folder, who runs the broker", false, other],
  ["no file that was there before", true, 0],
])("as root, gives %s", (_, isThere, uid) => {
  const auditLog = join(folder, "audit.log");
  if (isThere) writeFileSync(auditLog, "");
  chownSync(folder, other, other);
  expect(auditCommand({ auditLog }, { time: 0, action: "key create" })).toBe("");
  expect(statSync(auditLog).uid).toBe(uid);
});

it("begins a new line in a file that ends within a line, for example after a full disk", () => {
  const auditLog = join(folder, "audit.log");
  writeFileSync(auditLog, '{"time":"1970');
  expect(auditCommand({ auditLog }, { time: 0, action: "key create" })).toBe("");
  expect(readFileSync(auditLog, "utf8")).toMatch(/^\{"time":"1970\n\{.*\}\n$/);
});
