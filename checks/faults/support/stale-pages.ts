import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";

const pageBytes = 4096;
const name = "store.sqlite";

/** A page of the store that differs between two folders. */
export interface StalePage {
  readonly number: number;
  /** The table or database index whose first page this is; `none` for other pages. */
  readonly of: string;
}

/** The store's pages that differ between an earlier and a later folder, both of a clean stop. */
export function findStalePages(earlier: string, later: string): readonly StalePage[] {
  const [old, bytes] = [readFileSync(join(earlier, name)), readFileSync(join(later, name))];
  const pages = Array.from({ length: Math.min(old.length, bytes.length) / pageBytes }, (_, index) => index + 1);
  const roots = rootsOf(join(later, name));
  return pages
    .filter((page) => !pageOf(old, page).equals(pageOf(bytes, page)))
    .map((page) => ({ number: page, of: roots.get(page) ?? "none" }));
}

/** Replaces a page of the store by the same page of an earlier folder, as if the disk had lost the write of the newer page. */
export function putBack(
  { number }: StalePage,
  { earlier, folder }: { readonly earlier: string; readonly folder: string },
) {
  const bytes = readFileSync(join(folder, name));
  pageOf(bytes, number).set(pageOf(readFileSync(join(earlier, name)), number));
  writeFileSync(join(folder, name), bytes);
}

function pageOf(bytes: Buffer, number: number): Buffer {
  return bytes.subarray((number - 1) * pageBytes, number * pageBytes);
}

function rootsOf(file: string): ReadonlyMap<number, string> {
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = database.prepare("select rootpage, name from sqlite_schema").all() as {
    rootpage: number;
    name: string;
  }[]; // The types of the columns.
  database.close();
  return new Map(rows.map(({ rootpage, name: of }) => [rootpage, of]));
}
