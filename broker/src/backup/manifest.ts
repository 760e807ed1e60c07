import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";

/** Name of the file that makes a folder a backup. It is written last, so a backup that was cut short has none. */
export const manifestFile = "backup.json";

/** Any plain file name, since an operator or a groupId names key files. Restoring somebody's backup must not write outside the target folder. */
const name = z.string().regex(/^(?!\.{1,2}$)[^/\\\0]{1,255}$/);

const manifestSchema = z.strictObject({
  format: z.literal("stele-backup"),
  formatVersion: z.literal(1),
  /** The version of Stele that made it. */
  version: z.string(),
  /** Time of the state that the files hold: ISO 8601, UTC. */
  madeAt: z.iso.datetime(),
  files: z.array(z.strictObject({ name, bytes: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) })),
});

/** What a backup contains. */
export type Manifest = z.infer<typeof manifestSchema>;

/** One file of a backup. */
export type BackupFile = Manifest["files"][number];

export function toManifest(parts: Pick<Manifest, "version" | "madeAt" | "files">): Manifest {
  return { format: "stele-backup", formatVersion: 1, ...parts };
}

export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

/** @throws Error if the folder has no valid manifest, like an unfinished backup or a plain copy of a broker's files. */
export function readManifest(folder: string): Manifest {
  const file = join(folder, manifestFile);
  try {
    return parseManifest(readFileSync(file, "utf8"));
  } catch (cause) {
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "not a manifest of this version";
    throw new Error(
      `${folder} is not a whole backup: ${file} cannot be read (${reason}). A copy of a running broker's files is not a backup; \`stele backup\` makes one.`,
      { cause },
    );
  }
}

/** @throws Error if the text is not a manifest. */
export function parseManifest(text: string): Manifest {
  return manifestSchema.parse(JSON.parse(text));
}
