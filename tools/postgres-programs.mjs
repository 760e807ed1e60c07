// The programs of PostgreSQL that this machine has, and the user that runs them.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Message if the programs are missing. */
export const missingPostgres = `PostgreSQL is not installed: neither initdb nor postgres is on the path or under /usr/lib/postgresql. Install it, version 15 or later:
  Debian, Ubuntu    apt-get install postgresql
  Fedora            dnf install postgresql-server
  macOS             brew install postgresql@17, and put its bin folder on the path`;

/** The folder of `initdb` and `postgres`: that of Debian's newest version, or else one on the path. */
export function findBinaries() {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian)
    ? readdirSync(debian).toSorted((left, right) => Number(right) - Number(left))
    : [];
  const folders = [
    ...versions.map((version) => join(debian, version, "bin")),
    ...(process.env.PATH ?? "").split(delimiter),
  ];
  return folders.find(
    (folder) => folder !== "" && ["initdb", "postgres"].every((name) => existsSync(join(folder, name))),
  );
}

/** The user that must run PostgreSQL, because it refuses to run as root; undefined if this process does not run as root. */
export function findOwner() {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const [found] = ["postgres", "nobody"].flatMap((name) => users.filter(([own]) => own === name));
  if (found === undefined)
    throw new Error("PostgreSQL cannot run as root, and this machine has neither a user postgres nor a user nobody");
  return { uid: Number(found[2]), gid: Number(found[3]) };
}
