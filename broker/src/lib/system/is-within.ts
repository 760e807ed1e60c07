import { realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";

/** Whether a path, which need not exist, is the folder or inside it. Follows links. */
export async function isWithin(path: string, folder: string): Promise<boolean> {
  const [inner, outer] = [await realOf(resolve(path)), await realOf(resolve(folder))];
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

/** The path without links, as far as it exists. */
async function realOf(path: string): Promise<string> {
  const parent = dirname(path);
  return realpath(path).catch(async () => (parent === path ? path : join(await realOf(parent), basename(path))));
}
