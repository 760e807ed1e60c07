import { expect, it } from "vitest";
import { closing } from "./copy-file.ts";

/** A file on a disk that fails. */
const handle = { close: () => Promise.reject(new Error("EIO: i/o error, close")) };

it("if a file cannot be closed, throws an error that names the file, or the earlier failure if there was one", async () => {
  const options = { path: "/copy" };
  await expect(closing(handle, options, async () => 1)).rejects.toThrow("/copy: EIO: i/o error, close");
  const failed = closing(handle, options, () => Promise.reject(new Error("/copy: ENOSPC: no space left on device")));
  await expect(failed).rejects.toThrow("ENOSPC");
});
