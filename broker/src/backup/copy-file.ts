import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import type { BackupFile } from "./manifest.ts";

/** Bytes copied per step; between steps, the broker serves its clients. */
const stepBytesMax = 256 * 1024;

/**
 * Copies a file to a new one that only its owner may read, syncs the new file to disk, and returns its length and digest.
 * @throws the system's error, such as EEXIST if the new file exists; the reason of `signal`.
 */
export async function copyFile(
  from: string,
  to: string,
  signal?: AbortSignal,
): Promise<Pick<BackupFile, "bytes" | "sha256">> {
  await using source = await open(from, "r");
  await using target = await open(to, "wx", 0o600);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const step of stepsOf(source)) {
    signal?.throwIfAborted();
    hash.update(step);
    await target.writeFile(step);
    bytes += step.length;
  }
  await target.sync();
  return { bytes, sha256: hash.digest("hex") };
}

/** Yields the same memory each time: the caller uses a step before it asks for the next. */
async function* stepsOf(source: FileHandle): AsyncIterable<Buffer> {
  const buffer = Buffer.allocUnsafe(stepBytesMax);
  for (;;) {
    const { bytesRead } = await source.read(buffer, 0, buffer.length);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}
