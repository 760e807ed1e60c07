import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pause, type Timer } from "../lib/pause.ts";
import { FolderInUseError, openDataFolder } from "../lib/system/data-folder.ts";
import { type Manifest, manifestFile, parseManifest } from "./manifest.ts";
import { type BackupAnswer, RequestFiles } from "./request-files.ts";

/** Time between two polls for the answer, in milliseconds. */
const pollMs = 200;
/** Polls between two checks that the broker still runs. */
const pollsPerCheck = 50;

/**
 * Maximum number of polls that find neither the request nor an answer. A broker that takes a request answers in the same turn; a broker that starts again
 * removes the request.
 */
const pollsUnansweredMax = 25;

/** Maximum number of consecutive polls that find no sign of life of the broker: it hangs, or cannot take the request. */
const pollsSilentMax = 300;

/**
 * Asks the broker that uses the folder for a backup, and waits for the answer.
 * @throws Error with the broker's reason; Error if another request waits, or if the broker has ended, was restarted, gives no sign of life, did not answer, or
 * wrote to another place.
 */
export async function askBroker(
  folder: string,
  { target, timer }: { readonly target: string; readonly timer: Timer },
): Promise<Manifest> {
  const files = new RequestFiles(folder);
  const id = randomUUID();
  files.ask({ id, target });
  try {
    const answer = await untilAnswered(files, { id, folder, timer });
    if (answer.status !== "done") {
      throw new Error(`the broker, which writes the backup with its own rights, refused: ${answer.reason}`);
    }
    // The broker may see other files than this command: in a container, or with a temporary folder of its own.
    if (!existsSync(join(target, manifestFile))) {
      throw new Error(
        `the broker made the backup in its own ${target}, which this command does not see: name a folder that both of them see`,
      );
    }
    return parseManifest(answer.manifest);
  } finally {
    unlessRefused(() => files.forget(id));
  }
}

type LastAnswer = Exclude<BackupAnswer, { readonly status: "running" }>;

async function untilAnswered(
  files: RequestFiles,
  { id, folder, timer }: { readonly id: string; readonly folder: string; readonly timer: Timer },
): Promise<LastAnswer> {
  let [unanswered, silent, sign] = [0, 0, ""];
  for (let polls = 1; ; polls += 1) {
    const isWaiting = files.isWaiting(); // Before the answer is read: the broker first removes the request.
    const answer = files.findAnswer(id);
    if (answer !== undefined && answer.status !== "running") return answer;
    unanswered = isWaiting || answer !== undefined ? 0 : unanswered + 1;
    if (unanswered > pollsUnansweredMax) {
      throw new Error(
        "the broker could not read the request or write its answer, or was started again meanwhile: see its log. Run this command as its user, or as root.",
      );
    }
    const before = sign;
    sign = files.signOfLife();
    silent = sign === before ? silent + 1 : 0;
    if (silent > pollsSilentMax) {
      if (answer === undefined) unlessRefused(() => files.withdraw());
      throw new Error(toSilence(folder));
    }
    if (polls % pollsPerCheck === 0 && !isAlive(answer?.pid) && !isInUse(folder)) {
      unlessRefused(() => files.withdraw());
      throw new Error("the broker has ended: see its log, and make the backup again");
    }
    await pause(timer, pollMs);
  }
}

function toSilence(folder: string): string {
  const seconds = (pollsSilentMax * pollMs) / 1_000;
  return (
    `the broker gave no sign of life for ${seconds} s: it hangs, may not remove files from ${folder}, or is still starting or stopping; see its log. ` +
    "Or another stele command uses the folder"
  );
}

/** Removes a file of this command. If the system refuses, the next start of the broker removes it; how the backup ended says more. */
function unlessRefused(remove: () => void): void {
  try {
    remove();
  } catch {
    // As above.
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
