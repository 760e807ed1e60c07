import { expect, test } from "vitest";
import { hasPackages, type LockedPackage } from "./installed-packages.mjs";

type Packages = Readonly<Record<string, LockedPackage>>;

const system = { platform: "linux", arch: "x64" };
const plain = { version: "1.0.0", integrity: "sha512-a" };
const native = { ...plain, optional: true, os: ["linux"], cpu: ["x64"] };

test.each<[string, readonly [Packages, Packages], boolean]>([
  [
    "accepts the same packages",
    [{ "": { version: "0.1.0" }, "node_modules/a": plain }, { "node_modules/a": plain }],
    true,
  ],
  ["refuses a missing package", [{ "node_modules/a": plain }, {}], false],
  [
    "refuses a package of another version",
    [{ "node_modules/a": plain }, { "node_modules/a": { ...plain, version: "1.0.1" } }],
    false,
  ],
  [
    "refuses a package with other bytes",
    [{ "node_modules/a": plain }, { "node_modules/a": { ...plain, integrity: "sha512-b" } }],
    false,
  ],
  ["accepts an additional package", [{}, { "node_modules/a": plain }], true],
  [
    "accepts a missing optional package for another system",
    [{ "node_modules/a": { ...native, os: ["darwin"] } }, {}],
    true,
  ],
  [
    "accepts a missing optional package for another processor",
    [{ "node_modules/a": { ...native, cpu: ["arm64"] } }, {}],
    true,
  ],
  [
    "accepts a missing optional package for only one C library",
    [{ "node_modules/a": { ...native, libc: ["musl"] } }, {}],
    true,
  ],
  ["refuses a missing optional package for this system", [{ "node_modules/a": native }, {}], false],
])("%s", (_name, [wanted, installed], isEnough) => {
  expect(hasPackages(wanted, installed, system)).toBe(isEnough);
});
