import { SteleError } from "../stele-error.ts";

/** One event of an SSE stream. `data` is empty in a frame that only moves the tail's place. */
export interface Frame {
  readonly id: string | undefined;
  readonly name: string;
  readonly data: string;
}

export interface FrameParserOptions {
  /** Called when the server sends `retry`: the time to wait before each reconnect, in milliseconds. */
  readonly onRetryMs: (ms: number) => void;
}

/** Longest frame. It has room for a content of 32 MiB in Base64; a broker can be configured for at most 8 MiB. */
export const frameCharactersMax = 64 * 1024 * 1024;

/** Reads Server-Sent Events (WHATWG HTML, section 9.2.6) from chunks of text. It drops an incomplete frame at the end of the stream. */
export class FrameParser {
  readonly #options: FrameParserOptions;
  #line = "";
  #id: string | undefined;
  #name = "";
  #data: string[] = [];
  #hasFields = false;
  /** Length of the complete lines of the current frame. */
  #characters = 0;

  constructor(options: FrameParserOptions) {
    this.#options = options;
  }

  /** The frames that end in this chunk. @throws SteleError if a frame is too long. */
  push(chunk: string): readonly Frame[] {
    const frames: Frame[] = [];
    const lines = chunk.split("\n");
    lines[0] = this.#line + (lines[0] ?? "");
    this.#line = lines.pop() ?? "";
    for (const line of lines) {
      const frame = this.#read(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (frame !== undefined) frames.push(frame);
    }
    if (this.#characters + this.#line.length > frameCharactersMax) {
      throw new SteleError("the broker sent an event that is too long", { retry: false });
    }
    return frames;
  }

  #read(line: string): Frame | undefined {
    if (line === "") return this.#end();
    this.#characters += line.length;
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    this.#set(field, value);
    return undefined;
  }

  #set(field: string, value: string): void {
    if (field === "id") this.#id = value;
    else if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "retry" && /^\d{1,9}$/.test(value)) this.#options.onRetryMs(Number(value));
    this.#hasFields ||= field === "id" || field === "data";
  }

  #end(): Frame | undefined {
    const frame = { id: this.#id, name: this.#name === "" ? "message" : this.#name, data: this.#data.join("\n") };
    const isFrame = this.#hasFields;
    this.#id = undefined;
    this.#name = "";
    this.#data = [];
    this.#hasFields = false;
    this.#characters = 0;
    return isFrame ? frame : undefined;
  }
}
