import { statSync } from "node:fs";

/** A file as it was when this process opened it. */
export interface OpenFile {
  readonly path: string;
  readonly dev: number;
  readonly ino: number;
}

/** Undefined if there is no such file. */
export function noteFile(path: string): OpenFile | undefined {
  const there = statSync(path, { throwIfNoEntry: false });
  return there && { path, dev: there.dev, ino: there.ino };
}

/** Whether the file is no longer at its path; false also if the system does not tell. */
export function isMoved({ path, dev, ino }: OpenFile): boolean {
  try {
    const there = noteFile(path);
    return there?.dev !== dev || there.ino !== ino;
  } catch {
    return false;
  }
}

/** The chain's or the store's file is no longer at its path. */
export class LostFileError extends Error {
  override readonly name = "LostFileError";

  constructor(path: string, options?: ErrorOptions) {
    super(
      `${path} was moved, deleted or replaced while the broker had it open: the broker ends, and changes nothing at that path. ` +
        "Move the whole data folder back, or restore it from a backup, then start again. " +
        "If a broker has started there meanwhile, stop that one first, and move its folder aside",
      options,
    );
  }
}

/** Returns `failure`, or a LostFileError if one of the files is no longer at its path: the loss may have caused the failure, and matters more. */
export function lossOr<Failure>(failure: Failure, files: readonly OpenFile[]): Failure | LostFileError {
  const lost = files.find(isMoved);
  return lost === undefined || failure instanceof LostFileError
    ? failure
    : new LostFileError(lost.path, { cause: failure });
}
