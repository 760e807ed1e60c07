import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { startBroker } from "../../harness/broker-process.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { hasStrace, straceTitle } from "../support/power/recorder.ts";

/** The parent holds a folder's name: unless the parent is synced, a power loss may remove the folder with all its files. */
it.runIf(hasStrace)(
  `the parents of a new data folder are synced to disk before the first file in the folder${straceTitle}`,
  async () => {
    using folder = createTempFolder();
    const dataDir = join(folder.path, "new", "data");
    const trace = join(folder.path, "trace");
    const shell = `exec strace -D -f -y -o '${trace}' -e trace=mkdir,mkdirat,fsync,exit_group "$@"`;
    {
      await using broker = await startBroker({ dataDir, shell });
      await broker.stop();
    }
    const linesOf = (): readonly string[] => readFileSync(trace, "utf8").split("\n");
    await until("strace has written everything", () => linesOf().some((line) => line.includes("+++ exited")));
    const lines = linesOf();
    const place = (mark: RegExp): number => lines.findIndex((line) => mark.test(line));
    for (const path of [join(folder.path, "new"), dataDir]) {
      const made = place(new RegExp(`mkdir(?:at)?\\(.*"${path}"`));
      const synced = lines.findIndex(
        (line, at) => at > made && new RegExp(`fsync\\(\\d+<${dirname(path)}>\\) += 0`).test(line),
      );
      expect(made, path).toBeGreaterThanOrEqual(0);
      expect(synced, path).toBeGreaterThan(made);
      expect(synced, path).toBeLessThan(place(new RegExp(`fsync\\(\\d+<${dataDir}/`)));
    }
  },
);
