import { createHash } from "node:crypto";

/** The secret of API keys in tests, in the form of a made one. */
export const secret = "s".repeat(43);

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
