import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";

/** A system call that changes files, makes them durable, or sends to a socket. Times are in nanoseconds since `originSeconds`. */
export type Call = Readonly<{ startedAt: number; endedAt: number }> &
  (
    | { readonly kind: "write"; readonly path: string; readonly offset: number; readonly data: Buffer }
    | { readonly kind: "truncate"; readonly path: string; readonly bytes: number }
    | { readonly kind: "create"; readonly path: string }
    | { readonly kind: "unlink"; readonly path: string }
    | { readonly kind: "link" | "rename"; readonly path: string; readonly to: string }
    /** `path` is a file or a folder. */
    | { readonly kind: "sync"; readonly path: string }
    | { readonly kind: "send"; readonly data: Buffer }
  );

/** The system calls that strace records. `parseTrace` throws if a call that it does not know changes a file. */
export const tracedCalls = `openat,creat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,truncate,ftruncate,fallocate,\
write,pwrite64,writev,pwritev,pwritev2,copy_file_range,sendfile,fsync,fdatasync,sync_file_range,sendto,sendmsg`;

/** The last line of a thread that exited or was killed. */
const endLine = /\n?\S+ \+\+\+ [^\n]*\n$/;
const endBytes = 200;

/** Whether every thread has ended, and strace has written all of its calls. */
export function isComplete(folder: string): boolean {
  const names = readdirSync(folder);
  return names.length > 0 && names.every((name) => endLine.test(endOf(join(folder, name))));
}

function endOf(file: string): string {
  const handle = openSync(file, "r");
  try {
    const bytes = Buffer.alloc(endBytes);
    const read = readSync(handle, bytes, 0, endBytes, Math.max(0, fstatSync(handle).size - endBytes));
    return bytes.toString("latin1", 0, read);
  } finally {
    closeSync(handle);
  }
}

/**
 * Reads from strace's files, in order of time, what all threads sent to sockets and how they changed or synced files below `root`. The traced process must
 * name files by absolute paths: calls with relative ones are left out. @throws Error for an unknown call on a file below `root`.
 */
export function parseTrace(folder: string, root: string): Call[] {
  const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "latin1").split("\n"));
  const parser = new TraceParser(root);
  // All times have the same number of digits, so that sorting the text sorts the lines by time.
  for (const line of lines.toSorted()) parser.read(line);
  return parser.calls;
}

/** A call that a kill cut short has the result "?" and no duration. */
const callLine = /^(\d+\.\d+) (\w+)\((.*)\)\s+= (?:\?|(-?\d+)[^=]* <([\d.]+)>)$/;
const quoted = /"((?:\\x[0-9a-f]{2})*)"/g;
const descriptor = /^(\d+)<((?:\\x[0-9a-f]{2})*)>/;

interface Line {
  readonly name: string;
  readonly args: string;
  /** Undefined if a kill cut the call short: it may have had its effect. */
  readonly result: number | undefined;
  readonly times: { readonly startedAt: number; readonly endedAt: number };
}

class TraceParser {
  readonly calls: Call[] = [];
  readonly #root: string;
  /** For each file descriptor, the offset of its next `write`. */
  readonly #offsets = new Map<number, number>();

  constructor(root: string) {
    this.#root = root;
  }

  read(text: string): void {
    const line = parseLine(text);
    if (line === undefined) return;
    const { name, args, result, times } = line;
    if (result !== undefined && result < 0) return;
    const [, number = "", hexPath = ""] = descriptor.exec(args) ?? [];
    const path = decode(hexPath).toString();
    if (path.startsWith("socket:") && /^(write|send)/.test(name)) {
      // Even if a kill cut the call short: the broker had decided to send this.
      this.calls.push({ ...times, kind: "send", data: Buffer.concat(textsOf(args)) });
    } else if (result !== undefined && this.#concernsOwn(path, args)) {
      this.#readFileCall({ name, args, result, times }, { path, fd: Number(number) });
    }
  }

  #concernsOwn(path: string, args: string): boolean {
    return this.#isOwn(path) || textsOf(args).some((word) => this.#isOwn(word.toString()));
  }

  #isOwn(path: string): boolean {
    return path === this.#root || path.startsWith(`${this.#root}/`);
  }

  #readFileCall(
    line: Line & { readonly result: number },
    { path, fd }: { readonly path: string; readonly fd: number },
  ): void {
    const { name, args, result, times } = line;
    const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = textsOf(args);
    const numbers = args.split(", ").map(Number);
    switch (name) {
      case "openat":
        this.#offsets.set(result, 0);
        if (args.includes("O_CREAT")) this.calls.push({ ...times, kind: "create", path: first.toString() });
        if (args.includes("O_TRUNC")) this.calls.push({ ...times, kind: "truncate", path: first.toString(), bytes: 0 });
        return;
      case "pwrite64":
        this.calls.push({
          ...times,
          kind: "write",
          path,
          offset: numbers.at(-1) ?? 0,
          data: first.subarray(0, result),
        });
        return;
      case "write": {
        const offset = this.#offsets.get(fd) ?? 0;
        this.#offsets.set(fd, offset + result);
        this.calls.push({ ...times, kind: "write", path, offset, data: first.subarray(0, result) });
        return;
      }
      case "ftruncate":
        this.calls.push({ ...times, kind: "truncate", path, bytes: numbers.at(-1) ?? 0 });
        return;
      case "fsync":
      case "fdatasync":
        this.calls.push({ ...times, kind: "sync", path });
        return;
      case "unlink":
      case "unlinkat":
        this.calls.push({ ...times, kind: "unlink", path: first.toString() });
        return;
      case "link":
      case "linkat":
        this.calls.push({ ...times, kind: "link", path: first.toString(), to: second.toString() });
        return;
      case "rename":
      case "renameat":
      case "renameat2":
        this.calls.push({ ...times, kind: "rename", path: first.toString(), to: second.toString() });
        return;
      default:
        throw new Error(`the broker changes files with ${name}, which the recorder does not know`);
    }
  }
}

function parseLine(text: string): Line | undefined {
  const [, time = "", name = "", args = "", result, seconds = "0"] = callLine.exec(text) ?? [];
  if (name === "") return undefined;
  const startedAt = nanoseconds(time);
  const times = { startedAt, endedAt: startedAt + Number(seconds) * 1e9 };
  return { name, args, result: result === undefined ? undefined : Number(result), times };
}

/** Zero of the trace's clock, in seconds since 1970: a minute before this module was loaded. So times are small enough for exact arithmetic. */
const originSeconds = Math.floor(Date.now() / 1000) - 60;

function nanoseconds(time: string): number {
  const [seconds = "", fraction = ""] = time.split(".");
  return (Number(seconds) - originSeconds) * 1e9 + Number(fraction);
}

function textsOf(args: string): Buffer[] {
  return [...args.matchAll(quoted)].map(([, hex = ""]) => decode(hex));
}

function decode(hex: string): Buffer {
  return Buffer.from(hex.replaceAll("\\x", ""), "hex");
}
