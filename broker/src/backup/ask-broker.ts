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

/** Maximum number of polls in a row that find the request not taken although the broker makes no other backup: it hangs, or cannot remove the request. */
const pollsUntakenMax = 300;

/**
 * Asks the broker that uses the folder for a backup, and waits for the answer.
 * @throws Error with the broker's reason, or if another request waits, or if the broker has ended, was started again, does not take the request, did not answer,
 * or wrote to another place.
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
    files.forget(id);
  }
}

type LastAnswer = Exclude<BackupAnswer, { readonly status: "running" }>;

async function untilAnswered(
  files: RequestFiles,
  { id, folder, timer }: { readonly id: string; readonly folder: string; readonly timer: Timer },
): Promise<LastAnswer> {
  let [unanswered, untaken] = [0, 0];
  for (let polls = 1; ; polls += 1) {
    const isWaiting = files.isWaiting(); // Before the answer is read: the broker first removes the request.
    untaken = isWaiting && !files.isBusy() ? untaken + 1 : 0;
    if (untaken > pollsUntakenMax) {
      files.withdraw();
      throw new Error(
        `the broker has not taken the request for ${(pollsUntakenMax * pollMs) / 1_000} s: it hangs, or may not remove files from ${folder}. See its log`,
      );
    }
    const answer = files.findAnswer(id);
    if (answer !== undefined && answer.status !== "running") return answer;
    unanswered = isWaiting || answer !== undefined ? 0 : unanswered + 1;
    if (unanswered > pollsUnansweredMax) {
      throw new Error(
        "the broker could not read the request or write its answer, or was started again meanwhile: see its log. Run this command as its user, or as root.",
      );
    }
    if (polls % pollsPerCheck === 0 && !isAlive(answer?.pid) && !isInUse(folder)) {
      files.withdraw();
      throw new Error("the broker has ended: see its log, and make the backup again");
    }
    await pause(timer, pollMs);
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
