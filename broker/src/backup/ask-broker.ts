import { randomUUID } from "node:crypto";
import { FolderInUseError, openDataFolder } from "../lib/system/data-folder.ts";
import { type Manifest, parseManifest } from "./manifest.ts";
import { type BackupAnswer, RequestFiles } from "./request-files.ts";

/** Time between two polls for the answer, in milliseconds. */
const pollMs = 200;
/** Polls between two checks that the broker still runs. */
const pollsPerCheck = 50;
/** Polls in a row that find neither request nor answer, after which the broker has forgotten the request. */
const pollsMissingMax = 50;

/**
 * Asks the broker that uses the folder for a backup, and waits for the answer.
 * @throws Error with the broker's reason, or if another request waits, or if the broker has ended or was started again.
 */
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
  let missing = 0;
  for (let polls = 1; ; polls += 1) {
    const isWaiting = files.isWaiting();
    const answer = files.findAnswer(id);
    if (answer !== undefined && answer.status !== "running") return answer;
    missing = isWaiting || answer !== undefined ? 0 : missing + 1;
    if (missing > pollsMissingMax) {
      throw new Error("the broker was started again meanwhile: see its log, and make the backup again");
    }
    if (polls % pollsPerCheck === 0 && !isAlive(answer?.pid) && !isInUse(folder)) {
      files.withdraw();
      throw new Error("the broker has ended: see its log, and make the backup again");
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** Whether this process sees a process with the identifier: it does not see those of other containers. */
function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Whether another process has locked the folder. */
export function isInUse(folder: string): boolean {
  try {
    openDataFolder(folder).release();
    return false;
  } catch (error) {
    if (error instanceof FolderInUseError) return true;
    throw error;
  }
}
