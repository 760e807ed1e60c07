import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, isAbsolute, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { PackedBroker } from "./packed/packed-broker.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const libraries = ["@stele/client", "@stele/eth", "@stele/wire"];
const canRun = process.env["CHECKS_REGISTRY"] === "required" || hasRegistry();

/** Whether npm reaches its registry. npm installs the dependencies of the tarballs from there. */
function hasRegistry(): boolean {
  try {
    execFileSync("npm", ["ping", "--fetch-retries=0", "--fetch-timeout=5000"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** The programs in the README of a workspace, in order. */
function examplesOf(workspace: string): readonly string[] {
  const text = readFileSync(join(root, workspace, "README.md"), "utf8");
  return [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = ""]) => code);
}

describe.runIf(canRun)("the packed tarballs, in a folder outside the repository (needs npm's registry)", () => {
  const folder = createTempFolder();
  const app = join(folder.path, "app");
  const prefix = join(folder.path, "global");
  // A new home folder, without the user's settings.
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder.path };
  let broker: PackedBroker;
  let printed = "";

  const npm = (...args: readonly string[]) =>
    run("npm", [...args, "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"], {
      cwd: app,
      env: { ...process.env, INIT_CWD: app },
    });
  const runProgram = async (name: string, code: string): Promise<string> => {
    writeFileSync(join(app, name), code);
    return (await run(process.execPath, [name], { cwd: app, env })).stdout;
  };
  const tarballs = (): readonly string[] => readdirSync(folder.path).filter((name) => name.endsWith(".tgz"));
  const tarballOf = (start: string): string =>
    join(folder.path, tarballs().find((name) => name.startsWith(start)) ?? start);

  beforeAll(async () => {
    printed = (await run(process.execPath, [join(root, "tools", "pack.mjs"), relative(process.cwd(), folder.path)]))
      .stdout;
    mkdirSync(app);
    writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }));
    await npm("install", ...tarballs().map((name) => join(folder.path, name)));
    await npm("install", "--global", "--prefix", prefix, tarballOf("stele-0"));
    broker = await PackedBroker.start({ program: join(prefix, "bin", "stele"), cwd: app, env });
  }, 180_000);
  afterAll(async () => {
    await broker?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  it("the tarballs are stele and its three libraries, in one version, with manifests for a registry", () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }; // Our own file.
    const names = ["stele", "stele-client", "stele-eth", "stele-wire"];
    expect(tarballs().toSorted()).toEqual(names.map((name) => `${name}-${version}.tgz`).toSorted());
    for (const name of ["stele", ...libraries]) {
      const text = readFileSync(join(app, "node_modules", name, "package.json"), "utf8");
      const manifest = JSON.parse(text) as Readonly<Record<string, unknown>>; // As npm specifies.
      expect(manifest).toMatchObject({ name, version, license: expect.any(String), engines: { node: ">=20.19" } });
      expect(manifest).not.toHaveProperty("private");
      expect(manifest).not.toHaveProperty("scripts");
      const own = Object.entries((manifest["dependencies"] ?? {}) as Record<string, string>); // As npm specifies.
      for (const [other, range] of own) if (other.startsWith("@stele/")) expect(range).toBe(version);
    }
  });

  it("the commands that pack prints install the tarballs by absolute paths, which npm does not take for repositories", () => {
    const commands = printed.split("\n").filter((line) => line.startsWith("  npm install "));
    const named = commands.map((line) => [...line.matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? ""));
    expect(named.map((paths) => paths.map((path) => basename(path).replace(/-\d.*$/, "")))).toEqual([
      ["stele"],
      ["stele-eth", "stele-wire", "stele-client"],
    ]);
    for (const path of named.flat()) expect(isAbsolute(path) && existsSync(path)).toBe(true);
  });

  it("each tarball has a README but no tests and no sources, and stele has the notices of its dependencies", async () => {
    for (const name of ["stele", ...libraries]) {
      const files = readdirSync(join(app, "node_modules", name), { recursive: true }).map(String);
      expect(files).toContain("README.md");
      expect(
        files.filter((file) => /test|\.map$|testing|\.tsbuildinfo|(?<!\.d)\.ts$/.test(file) && !/console/.test(file)),
      ).toEqual([]);
    }
    const notices = readFileSync(join(app, "node_modules", "stele", "THIRD-PARTY-NOTICES.txt"), "utf8");
    for (const name of ["fastify", "viem", "zod", "react"]) expect(notices).toMatch(new RegExp(`^${name} \\d`, "m"));
  });

  it("npm i -g, npx and npm exec run the command stele of the tarball", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }; // Our own file.
    const installed = await runStele(["--version"], { program: [join(prefix, "bin", "stele")], env });
    expect(installed).toEqual({ code: 0, stdout: `stele ${version}\n`, stderr: "" });
    const local = await run("npx", ["--no", "--", "stele", "--version"], { cwd: app });
    expect(local.stdout).toBe(`stele ${version}\n`);
    const once = await npm(
      "exec",
      "--yes",
      `--cache=${join(folder.path, "cache")}`,
      `--package=${tarballOf("stele-0")}`,
      "--",
      "stele",
      "--version",
    );
    expect(once.stdout).toBe(`stele ${version}\n`);
  });

  it("the installed command starts a broker, and publishes, tails and verifies an event with it", async () => {
    const stele = (...args: readonly string[]) =>
      runStele(args, { program: [join(prefix, "bin", "stele")], env: { ...env, STELE_URL: broker.url } });
    const published = await stele("pub", "orders/new", '{"order":1}', "--open", "-o", "ndjson");
    expect(published).toMatchObject({ code: 0, stderr: "" });
    const { eventId } = JSON.parse(published.stdout) as { eventId: string }; // As docs/cli.md describes.
    const tailed = await stele("tail", "orders/#", "--after", "OFFSET_FIRST", "-n", "1", "-o", "ndjson");
    expect(JSON.parse(tailed.stdout)).toMatchObject({ eventId, topic: "orders/new" });
    const verified = await stele("verify", eventId, "--broker", broker.url, "--remember");
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(`verified: event ${eventId}`) });
    const page = await fetch(`${broker.url}/console/`);
    expect(await page.text()).toContain("<title>");
  });

  it("the examples of each README run with the installed libraries", async () => {
    const outputs: Readonly<Record<string, readonly RegExp[]>> = {
      client: [/^invoices\/new \{ amount: 1 \} true\n$/, /^invoices\/new 1\n$/, /^function\n$/, /^refuted\n$/],
      wire: [/^true\n$/],
      eth: [/^function 32\n$/],
    };
    for (const [workspace, expected] of Object.entries(outputs)) {
      const examples = examplesOf(workspace);
      expect(examples).toHaveLength(expected.length);
      for (const [index, code] of examples.entries()) {
        const output = await runProgram("example.mjs", code.replaceAll("http://127.0.0.1:8080", broker.url));
        expect(output).toMatch(expected[index] ?? "");
      }
    }
  });

  it.each(["nodenext", "bundler"])(
    "the examples of each README compile with the libraries' types and moduleResolution %s",
    async (resolution) => {
      const programs = ["client", "wire", "eth"].flatMap((name) => examplesOf(name));
      const code = programs.map((program, index) => ({ name: `program-${resolution}-${index}.ts`, program }));
      for (const { name, program } of code) writeFileSync(join(app, name), program);
      const module = resolution === "nodenext" ? "nodenext" : "esnext";
      const target = ["--target", "es2022", "--lib", "es2023,dom,dom.asynciterable"];
      // A check of TypeScript's own libraries would take most of the time. The types of all packages are checked.
      const options = ["--noEmit", "--strict", "--skipDefaultLibCheck", ...target];
      // Programs for browsers and workers, which are bundled, have no types of Node.js.
      const types = resolution === "nodenext" ? ["--types", "node"] : [];
      const roots = ["--typeRoots", join(root, "node_modules", "@types")];
      const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
      const files = code.map(({ name }) => name);
      const args = [
        compiler,
        ...options,
        ...types,
        ...roots,
        "--module",
        module,
        "--moduleResolution",
        resolution,
        ...files,
      ];
      const { stdout } = await run(process.execPath, args, { cwd: app }).catch((error: { stdout: string }) => error);
      expect(stdout).toBe("");
    },
  );

  it("@stele/client passes Are The Types Wrong for each of its entries", async () => {
    const tarball = tarballOf("stele-client-");
    const attw = join(root, "node_modules", "@arethetypeswrong", "cli", "dist", "index.js");
    // The tool exits with 1 if it finds a problem, and then `run` throws. All packages are ESM only.
    const { stdout } = await run(process.execPath, [attw, tarball, "--profile", "esm-only", "--no-color"], {
      cwd: app,
    });
    for (const entry of ["@stele/client/admin", "@stele/client/webhook", "@stele/client/proof"])
      expect(stdout).toContain(entry);
  });
});
