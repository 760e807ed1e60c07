import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { findProgram } from "../harness/find-program.ts";
import { findFreePort } from "../harness/free-port.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const folder = fileURLToPath(new URL("../../deploy", import.meta.url));
const read = (name: string): string => readFileSync(join(folder, name), "utf8");

/** The instructions of the Containerfile, each as its name and its arguments on one line. */
const instructions = read("Containerfile")
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll("\\\n", " ")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => [line.split(" ")[0] ?? "", line.slice(line.indexOf(" ") + 1)] as const);
const last = (name: string): string => instructions.findLast(([found]) => found === name)?.[1] ?? "";

describe("the Containerfile", () => {
  it("the Containerfile builds in two stages on exact versions, with COPY instead of ADD", () => {
    const bases = instructions.filter(([name]) => name === "FROM").map(([, base]) => base);
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base).toMatch(/^\S+:\d+\.\d+\.\d+-[\w-]+( AS \w+)?$/);
    expect(instructions.map(([name]) => name)).not.toContain("ADD");
  });

  it("the image of the Containerfile runs without root, gets signals itself, and holds no secret", () => {
    expect(last("USER")).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(instructions.findLastIndex(([name]) => name === "RUN")).toBeLessThan(
      instructions.findIndex(([name]) => name === "USER"),
    );
    expect(JSON.parse(last("ENTRYPOINT"))).toEqual(["stele"]);
    for (const [name, text] of instructions)
      if (/^(?:ENV|ARG)$/.test(name)) expect(text).not.toMatch(/key|secret|token|password/i);
  });

  it.each(["Containerfile.dockerignore", "../docs/cluster/Dockerfile.dockerignore"])(
    "%s keeps keys and data folders out of the image",
    (name) => expect(read(name).split("\n")).toEqual(expect.arrayContaining([".git", "**/*.key", "data"])),
  );

  it("git ignores the keys that the commands of docs/access.md make in the folder of the repository", () => {
    expect(read("../.gitignore").split("\n")).toContain("*.key");
  });

  it("docs/deploy.md builds the image in a format that keeps the health check", () => {
    const page = readFileSync(new URL("../../docs/deploy.md", import.meta.url), "utf8");
    expect(/^podman build (.*)$/m.exec(page)?.[1]).toMatch(/^--format docker -f deploy\/Containerfile /);
  });

  const running = useWorld(embeddedWorld);

  it("the Containerfile has a health check that exits with 0 at a running broker, and with 1 where none listens", async () => {
    const [, check = ""] = /CMD (\[.*\])$/.exec(last("HEALTHCHECK")) ?? [];
    const [, ...args] = JSON.parse(check) as readonly string[]; // Our own file.
    const statusAt = (port: string): number | null =>
      spawnSync(
        process.execPath,
        args.map((text) => text.replace(":8080", `:${port}`)),
      ).status;
    expect(statusAt(new URL(running().broker.url).port)).toBe(0);
    expect(statusAt(String(await findFreePort()))).toBe(1);
  });
});

it.runIf(findProgram("systemd-analyze") !== undefined)("systemd accepts the unit, and rates it as hardened", () => {
  const unit = join(folder, "stele.service");
  expect(spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
  const { status, stdout } = spawnSync("systemd-analyze", ["security", "--offline=true", "--threshold=20", unit], {
    encoding: "utf8",
  });
  expect({ status, stdout: stdout.trim().split("\n").at(-1) }).toEqual({
    status: 0,
    stdout: expect.stringContaining("OK"),
  });
});

it("the unit lets the broker list the addresses of its machine, which it compares before each callback", () => {
  const [, families = ""] = /^RestrictAddressFamilies=(.*)$/m.exec(read("stele.service")) ?? [];
  expect(families.split(" ")).toEqual(expect.arrayContaining(["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"]));
});

it("systemd does not restart a broker whose settings are refused, or whose data folder was moved or deleted", () => {
  expect(read("stele.service")).toMatch(/^RestartPreventExitStatus=2 3$/m);
});

it("systemd never gives up a broker that cannot start", () => {
  expect(read("stele.service")).toMatch(/^\[Unit\]\n(?:[^[].*\n)*StartLimitIntervalSec=0$/m);
});

it.runIf(findProgram("helm") !== undefined)("the chart passes helm lint, and runs without root", () => {
  const chart = join(folder, "chart");
  execFileSync("helm", ["lint", "--strict", chart]);
  const rendered = execFileSync("helm", ["template", "one", chart], { encoding: "utf8" });
  expect(rendered).toContain("runAsNonRoot: true");
  expect(rendered).toContain("readOnlyRootFilesystem: true");
  expect(rendered).toContain("enableServiceLinks: false");
});
