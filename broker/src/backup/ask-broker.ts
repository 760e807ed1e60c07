import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { FolderInUseError, openDataFolder } from "../lib/system/data-folder.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import { type BackupAnswer, RequestFiles } from "./request-files.ts";

/** Time between two looks for the answer, in milliseconds. */
const lookEveryMs = 200;
/** Looks without news after which the command checks that the broker is still there. */
const looksBeforeCheck = 50;

/** Asks the broker that has the folder for a backup, and waits for it. @throws Error with the broker's reason, or that it has ended. */
export async function askBroker(folder: string, target: string): Promise<Manifest> {
  const files = new RequestFiles(folder);
  const id = randomUUID();
  files.ask({ id, target });
  try {
    const answer = await untilAnswered(files, { id, folder });
    if (answer.status === "done") return parseManifest(answer.manifest);
    throw new Error(answer.reason);
  } finally {
    files.forget(id);
  }
}

type LastAnswer = Exclude<BackupAnswer, { readonly status: "running" }>;

async function untilAnswered(
  files: RequestFiles,
  { id, folder }: { readonly id: string; readonly folder: string },
): Promise<LastAnswer> {
  for (let looks = 1; ; looks += 1) {
    const answer = files.findAnswer(id);
    if (answer !== undefined && answer.status !== "running") return answer;
    if (looks % looksBeforeCheck === 0 && !isAlive(answer?.pid) && !isInUse(folder)) {
      files.withdraw();
      throw new Error("the broker has ended: see its log, and make the backup again");
    }
    await pause(lookEveryMs);
  }
}

/** False also for a process of another container. */
function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Whether a broker has the folder. */
export function isInUse(folder: string): boolean {
  try {
    openDataFolder(folder).release();
    return false;
  } catch (error) {
    if (error instanceof FolderInUseError) return true;
    throw error;
  }
}
