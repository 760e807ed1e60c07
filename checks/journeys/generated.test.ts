import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { findProgram } from "../harness/find-program.ts";
import { canImport } from "../harness/python.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const run = promisify(execFile);
const python = process.env["CHECKS_PYTHON"] ?? "python3";
const hasJava = process.env["CHECKS_JAVA"] === "required" || findProgram("java") !== undefined;
const running = useWorld(embeddedWorld);

/** Each generator reads `openapi.json` in the current folder, and writes the package `stele_client` there. */
const generators = [
  {
    name: "openapi-python-client",
    canRun: canImport("import openapi_python_client"),
    program: ["-m", "openapi_python_client"],
    args: ["generate", "--path", "openapi.json", "--output-path", "stele_client", "--meta", "none"],
    script: "generated/use_openapi_python_client.py",
  },
  {
    name: "openapi-generator",
    canRun: hasJava && canImport("import openapi_generator_cli"),
    program: ["-c", "from openapi_generator_cli import cli; cli()"],
    args: ["generate", "-i", "openapi.json", "-o", ".", "-g", "python", "--package-name", "stele_client"],
    script: "generated/use_openapi_generator.py",
  },
];

for (const { name, canRun, program, args, script } of generators) {
  it.runIf(canRun)(
    `${name} makes a client that opens, publishes and reads, and distinguishes results from failures`,
    async () => {
      using folder = createTempFolder();
      const { client, broker } = running();
      const { text } = await client.http.send({ method: "GET", path: "/openapi.json" });
      writeFileSync(join(folder.path, "openapi.json"), text);
      const options = { cwd: folder.path, env: { ...process.env, PYTHONUTF8: "1" } };
      await run(python, [...program, ...args], options);
      const { stdout } = await run(python, [fileURLToPath(new URL(script, import.meta.url)), broker.url], options);
      expect(stdout).toBe("done\n");
    },
  );
}
