import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { mainFile, startBroker } from "../../harness/broker-process.ts";
import { runStele } from "../../harness/stele-command.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { hasStrace, straceTitle } from "../support/power/recorder.ts";

const strace = ["strace", "-D", "-f", "-y", "-e", "trace=mkdir,mkdirat,fsync,fdatasync,exit_group"];

/** Checks in a trace that the parent of each folder was synced between the creation of the folder and that of the first file in the last folder. */
async function expectSynced(trace: string, folders: readonly string[]): Promise<void> {
  const linesOf = (): readonly string[] => readFileSync(trace, "utf8").split("\n");
  await until("strace has written everything", () => linesOf().some((line) => line.includes("+++ exited")));
  const lines = linesOf();
  const place = (mark: RegExp): number => lines.findIndex((line) => mark.test(line));
  for (const path of folders) {
    const made = place(new RegExp(`mkdir(?:at)?\\(.*"${path}"`));
    const synced = lines.findIndex(
      (line, at) => at > made && new RegExp(`fsync\\(\\d+<${dirname(path)}>\\)`).test(line),
    );
    expect(made, path).toBeGreaterThanOrEqual(0);
    expect(synced, path).toBeGreaterThan(made);
    expect(synced, path).toBeLessThan(place(new RegExp(`f(?:data)?sync\\(\\d+<${folders.at(-1)}/`)));
  }
}

/** The parent holds a folder's name: unless the parent is synced, a power loss may remove the folder with all its files. */
it.runIf(hasStrace)(
  `the parents of a new data folder are synced to disk before the first file in the folder${straceTitle}`,
  async () => {
    using folder = createTempFolder();
    const dataDir = join(folder.path, "new", "data");
    const trace = join(folder.path, "trace");
    const shell = `exec ${strace.join(" ")} -o '${trace}' "$@"`;
    {
      await using broker = await startBroker({ dataDir, shell });
      await broker.stop();
    }
    await expectSynced(trace, [join(folder.path, "new"), dataDir]);
  },
);

it.runIf(hasStrace)(
  `the parent of an existing data folder is synced too, since an earlier start may have been killed before that${straceTitle}`,
  async () => {
    using folder = createTempFolder();
    const dataDir = join(folder.path, "data");
    mkdirSync(dataDir);
    const trace = join(folder.path, "trace");
    {
      await using broker = await startBroker({ dataDir, shell: `exec ${strace.join(" ")} -o '${trace}' "$@"` });
      await broker.stop();
    }
    await expectSynced(trace, [dataDir]);
  },
);

it.runIf(hasStrace).each([
  ["a data folder that stele key creates", ["key", "create", "--principal", "a", "--role", "admin", "--data-dir"]],
  ["a backup", ["backup", "--data-dir", "DATA"]],
] as const)(
  `the parents of %s are synced to disk before the first file in the folder${straceTitle}`,
  async (_, words) => {
    using folder = createTempFolder();
    const [dataDir, target] = [join(folder.path, "data"), join(folder.path, "new", "target")];
    {
      await using broker = await startBroker({ dataDir });
      await broker.stop();
    }
    const trace = join(folder.path, "trace");
    const program = [...strace, "-o", trace, process.execPath, mainFile];
    const run = await runStele([...words.map((word) => (word === "DATA" ? dataDir : word)), target], { program });
    expect(run).toMatchObject({ code: 0 });
    await expectSynced(trace, [join(folder.path, "new"), target]);
  },
);
