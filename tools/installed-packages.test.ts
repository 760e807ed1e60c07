import { expect, test } from "vitest";
import { hasPackages, type LockedPackage } from "./installed-packages.mjs";

type Packages = Readonly<Record<string, LockedPackage>>;

const system = { platform: "linux", arch: "x64" };
const plain = { version: "1.0.0", integrity: "sha512-a" };
const native = { ...plain, optional: true, os: ["linux"], cpu: ["x64"] };

test.each<[string, readonly [Packages, Packages], boolean]>([
  ["the same", [{ "": { version: "0.1.0" }, "node_modules/a": plain }, { "node_modules/a": plain }], true],
  ["one that is missing", [{ "node_modules/a": plain }, {}], false],
  ["another version", [{ "node_modules/a": plain }, { "node_modules/a": { ...plain, version: "1.0.1" } }], false],
  ["other bytes", [{ "node_modules/a": plain }, { "node_modules/a": { ...plain, integrity: "sha512-b" } }], false],
  ["one more", [{}, { "node_modules/a": plain }], true],
  ["a missing program for another system", [{ "node_modules/a": { ...native, os: ["darwin"] } }, {}], true],
  ["a missing program for another processor", [{ "node_modules/a": { ...native, cpu: ["arm64"] } }, {}], true],
  ["a missing program for another C library", [{ "node_modules/a": { ...native, libc: ["musl"] } }, {}], true],
  ["a missing program for this system", [{ "node_modules/a": native }, {}], false],
])("%s", (_name, [wanted, installed], isEnough) => {
  expect(hasPackages(wanted, installed, system)).toBe(isEnough);
});
