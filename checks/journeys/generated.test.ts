import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { canImport } from "../harness/python.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const run = promisify(execFile);
const python = process.env["CHECKS_PYTHON"] ?? "python3";
const script = fileURLToPath(new URL("generated/use_client.py", import.meta.url));
const running = useWorld(embeddedWorld);

it.runIf(canImport("import openapi_python_client"))(
  "openapi-python-client makes a client that opens, publishes and reads, and tells results from failures",
  async () => {
    using folder = createTempFolder();
    const { client, broker } = running();
    const document = join(folder.path, "openapi.json");
    writeFileSync(document, (await client.http.send({ method: "GET", path: "/openapi.json" })).text);
    const words = ["generate", "--path", document, "--output-path", "stele_client", "--meta", "none"];
    const options = { cwd: folder.path, env: { ...process.env, PYTHONUTF8: "1" } };
    await run(python, ["-m", "openapi_python_client", ...words], options);
    const { stdout } = await run(python, [script, broker.url], options);
    expect(stdout).toBe("done\n");
  },
);
