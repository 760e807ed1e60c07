/** Versions of the protocol. */
export const versions = ["1.0", "1.1", "1.2"] as const;
export type Version = (typeof versions)[number];

/** A frame from the broker. Of repeated headers the first counts. */
export interface Frame {
  readonly command: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Every header line, not decoded. */
  readonly lines: readonly string[];
  readonly body: Buffer;
}

export type HeaderList = Readonly<Record<string, string>> | readonly (readonly [string, string])[];

const escapes: Readonly<Record<Version, readonly (readonly [string, string])[]>> = {
  "1.0": [],
  "1.1": [
    ["\\", "\\\\"],
    ["\n", "\\n"],
    [":", "\\c"],
  ],
  "1.2": [
    ["\\", "\\\\"],
    ["\r", "\\r"],
    ["\n", "\\n"],
    [":", "\\c"],
  ],
};

/** The bytes of a client's frame, with the escapes of its version. CONNECT and STOMP have none. */
export function toBytes(
  { command, headers = {}, body = "" }: { command: string; headers?: HeaderList; body?: string | Buffer },
  version: Version,
): Buffer {
  const rules = command === "CONNECT" || command === "STOMP" ? [] : escapes[version];
  const escape = (text: string): string => rules.reduce((done, [raw, escaped]) => done.replaceAll(raw, escaped), text);
  const pairs: readonly (readonly [string, string])[] = isList(headers) ? headers : Object.entries(headers);
  const lines = pairs.map(([name, value]) => `${escape(name)}:${escape(value)}\n`);
  return Buffer.concat([Buffer.from(`${command}\n${lines.join("")}\n`), Buffer.from(body), Buffer.of(0)]);
}

function isList(headers: HeaderList): headers is readonly (readonly [string, string])[] {
  return Array.isArray(headers);
}

/** Reads what a server sends, strictly. @throws Error for anything that the version does not allow. */
export class FrameReader {
  version: Version;
  /** Number of line feeds between frames, which are heart-beats. */
  beats = 0;
  #bytes = Buffer.alloc(0);

  constructor(version: Version) {
    this.version = version;
  }

  /** Whether a frame has begun and not ended. */
  get isInside(): boolean {
    return this.#bytes.length > 0;
  }

  push(chunk: Buffer): readonly Frame[] {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    const frames: Frame[] = [];
    for (let frame = this.#read(); frame !== undefined; frame = this.#read()) frames.push(frame);
    return frames;
  }

  #read(): Frame | undefined {
    while (this.#bytes[0] === 0x0a) {
      this.beats += 1;
      this.#bytes = this.#bytes.subarray(1);
    }
    const end = this.#bytes.indexOf("\n\n");
    if (end < 0) return undefined;
    const [command = "", ...lines] = this.#bytes.subarray(0, end).toString("utf8").split("\n");
    if (!/^(CONNECTED|MESSAGE|RECEIPT|ERROR)$/.test(command)) throw new Error(`not a server's command: ${command}`);
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const [name, value] = this.#toHeader(line, command);
      headers[name] ??= value;
    }
    const start = end + 2;
    const length = headers["content-length"];
    const stop = length === undefined ? this.#bytes.indexOf(0, start) : start + Number(length);
    if (stop < 0 || stop >= this.#bytes.length) return undefined;
    if (this.#bytes[stop] !== 0) throw new Error("no NUL after the body");
    const body = Buffer.from(this.#bytes.subarray(start, stop));
    this.#bytes = this.#bytes.subarray(stop + 1);
    return { command, headers, lines, body };
  }

  #toHeader(line: string, command: string): readonly [string, string] {
    const colon = line.indexOf(":");
    if (colon < 1 || line.includes("\r")) throw new Error(`not a header: ${JSON.stringify(line)}`);
    const pair = [line.slice(0, colon), line.slice(colon + 1)] as const;
    if (command === "CONNECTED" || this.version === "1.0") return pair;
    if (pair[1].includes(":")) throw new Error(`a colon that is not escaped: ${line}`);
    return [this.#unescape(pair[0]), this.#unescape(pair[1])];
  }

  #unescape(text: string): string {
    return text.replaceAll(/\\(.?)/gs, (escape) => {
      const found = escapes[this.version].find(([, escaped]) => escaped === escape);
      if (found === undefined) throw new Error(`undefined escape ${escape}`);
      return found[0];
    });
  }
}
