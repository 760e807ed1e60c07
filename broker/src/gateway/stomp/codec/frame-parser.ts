import { isUtf8 } from "node:buffer";
import { copyOf } from "../../../lib/copy-of.ts";
import { PendingBytes } from "../../shared/connection/pending-bytes.ts";
import { unescapeHeader } from "./escapes.ts";
import { tlsHandshake } from "../../shared/connection/tls/tls-handshake.ts";
import {
  type ClientCommand,
  clientCommands,
  type ClientFrame,
  findHeader,
  type Headers,
  type Version,
} from "./frame.ts";
import { FrameError } from "./frame-error.ts";

export interface FrameLimits {
  /** Longest command with its headers, in bytes. */
  readonly headBytesMax: number;
  readonly headersMax: number;
  readonly bodyBytesMax: number;
}

const [NUL, LF, CR] = [0x00, 0x0a, 0x0d];

/** Bytes of the longest command and its end of line. */
const commandBytesMax = Math.max(...clientCommands.map(({ length }) => length)) + 2;

interface Head extends Pick<ClientFrame, "command" | "headers"> {
  /** From `content-length`; undefined if the first NUL ends the body. */
  readonly bodyLength: number | undefined;
  readonly bodyBytesMax: number;
}

/**
 * Cuts a stream of bytes into frames, whatever its chunks. Reads each byte of an unfinished frame a bounded number of times, and refuses a frame as
 * soon as it is too large.
 */
export class FrameParser {
  readonly #limits: FrameLimits;
  readonly #pending = new PendingBytes();
  /** The head of the frame whose body is arriving. */
  #head: Head | undefined;
  /** Offset of the first byte that was not searched yet. */
  #scanned = 0;
  /** Offset of the unfinished line, and the number of lines before it. */
  #lineStart = 0;
  #lines = 0;
  #version: Version | undefined;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
  }

  /** Pushed bytes that were not passed on yet. */
  get pendingBytes(): number {
    return this.#pending.length;
  }

  /** Size of the buffer, including free room. */
  get heldBytes(): number {
    return this.#pending.heldLength;
  }

  /** Sets the negotiated version. Until then, frames other than CONNECT are read by the rules of 1.2; CONNECT always has rules of its own. */
  use(version: Version): void {
    this.#version = version;
  }

  /**
   * Passes frames to `take` in order: first the frames that an earlier call left, then those that `chunk` completes. Stops when `take` returns false;
   * {@link resume} continues with the rest. @throws FrameError for bytes that cannot be a frame, and for a frame that is too large.
   */
  push(chunk: Buffer, take: (frame: ClientFrame) => boolean): void {
    if (chunk.length === 0) return;
    this.#pending.push(chunk, this.#needed);
    this.resume(take);
  }

  /** Frees the buffer. Neither `push` nor `resume` is called afterwards. */
  discard(): void {
    this.#pending.discard();
  }

  /** Passes on the frames that an earlier call left. Throws as {@link push} does. */
  resume(take: (frame: ClientFrame) => boolean): void {
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) {
      if (take(frame)) continue;
      if (this.#pending.length === 0) break;
      return; // the rest may hold whole frames
    }
    this.#pending.settle(this.#needed);
  }

  /** Length of the unfinished body with its NUL; for a head, or a body of unknown length, the limit. */
  get #needed(): number {
    if (this.#head === undefined) return this.#limits.headBytesMax;
    return (this.#head.bodyLength ?? this.#head.bodyBytesMax) + 1;
  }

  /** The next frame; undefined if bytes are missing. */
  #next(): ClientFrame | undefined {
    this.#head ??= this.#tryHead();
    if (this.#head === undefined) return undefined;
    const { command, headers } = this.#head;
    const body = this.#readBody(this.#head);
    if (body === undefined) return undefined;
    this.#head = undefined;
    return { command, headers, body };
  }

  /** @throws FrameError that names the receipt, if the lines before the fault ask for one. */
  #tryHead(): Head | undefined {
    try {
      return this.#readHead();
    } catch (error) {
      if (!(error instanceof FrameError) || error.receipt !== undefined) throw error;
      throw new FrameError(error.message, this.#receiptSoFar());
    }
  }

  /** The receipt that the complete lines of an unfinished head ask for. */
  #receiptSoFar(): string | undefined {
    const [, ...lines] = toLines(this.#pending.slice(0, this.#lineStart));
    const receipt = findReceipt(lines, this.#version ?? "1.2");
    return receipt === undefined || /[\0\uFFFD]/.test(receipt) ? undefined : receipt;
  }

  #readHead(): Head | undefined {
    if (this.#lines === 0) this.#skipHeartBeats();
    if (this.#pending.at(0) === tlsHandshake)
      throw new FrameError("the client began a TLS handshake; see stompTlsPort");
    const { headBytesMax } = this.#limits;
    for (let end = this.#findLine(); end !== undefined; end = this.#findLine()) {
      const length = end - this.#lineStart;
      const isBlank = length === 0 || (length === 1 && this.#pending.at(this.#lineStart) === CR);
      if (isBlank && this.#lines > 0) return this.#endHead(end + 1);
      this.#endLine(end);
    }
    if (this.#pending.length > headBytesMax) throw tooLongHead(headBytesMax);
    if (this.#lines === 0) checkCommandLength(this.#pending.length);
    return undefined;
  }

  #endLine(end: number): void {
    const { headersMax } = this.#limits;
    if (this.#lines === 0) checkCommandLength(end);
    this.#lines += 1;
    this.#lineStart = end + 1;
    if (this.#lines > headersMax + 1) throw new FrameError(`a frame with more than ${headersMax} headers`);
  }

  /** Skips ends of line between frames (heart-beats of 1.1 and 1.2). */
  #skipHeartBeats(): void {
    let length = 0;
    for (; ; length += 1) {
      const byte = this.#pending.at(length);
      if (byte === CR && [LF, undefined].includes(this.#pending.at(length + 1))) {
        if (this.#pending.at(length + 1) === undefined) break; // its LF is on the way
      } else if (byte !== LF) break;
    }
    if (length === 0) return;
    this.#pending.consume(length);
    this.#scanned = 0;
  }

  /** Offset of the next LF; undefined if it has not arrived. */
  #findLine(): number | undefined {
    const end = this.#pending.indexOf(LF, this.#scanned);
    if (end !== -1) {
      this.#scanned = end + 1;
      return end;
    }
    if (this.#pending.indexOf(NUL, this.#scanned) !== -1) throw earlyNul();
    this.#scanned = this.#pending.length;
    return undefined;
  }

  #endHead(end: number): Head {
    if (end > this.#limits.headBytesMax) throw tooLongHead(this.#limits.headBytesMax);
    const bytes = this.#pending.slice(0, this.#lineStart);
    if (!isUtf8(bytes)) throw new FrameError("a command or header that is not valid UTF-8");
    if (bytes.includes(NUL)) throw earlyNul();
    const [commandLine = "", ...lines] = toLines(bytes);
    this.#pending.consume(end);
    [this.#scanned, this.#lineStart, this.#lines] = [0, 0, 0];
    const command = this.#toCommand(withoutReturn(commandLine), lines);
    const headers = this.#toHeaders(command, lines);
    const bodyBytesMax = this.#bodyBytesMaxOf(command, headers);
    const bodyLength = toBodyLength(headers);
    if (bodyLength !== undefined && bodyLength > bodyBytesMax) throw tooLongBody({ command, headers, bodyBytesMax });
    return { command, headers, bodyLength, bodyBytesMax };
  }

  #toCommand(text: string, lines: readonly string[]): ClientCommand {
    const command = clientCommands.find((known) => known === text);
    if (command !== undefined) return command;
    const receipt = findReceipt(lines, this.#version ?? "1.2");
    throw new FrameError(`${JSON.stringify(text)} is not a command of a STOMP client`, receipt);
  }

  #toHeaders(command: ClientCommand, lines: readonly string[]): Headers {
    if (command !== "CONNECT" && command !== "STOMP") {
      const version = this.#version ?? "1.2"; // what comes before CONNECT is refused anyway
      return toHeaders(lines, version);
    }
    // CONNECT has no escapes, and says itself whether it is STOMP 1.0, whose values may be padded.
    const headers = lines.map((line) => splitConnectHeader(withoutReturn(line)));
    return isOf10(headers) ? headers.map(trimmed) : headers;
  }

  /** Longest body of a frame, in bytes. 1.0 ignores the body of frames that need none; later versions forbid it. */
  #bodyBytesMaxOf(command: ClientCommand, headers: Headers): number {
    if (command === "SEND") return this.#limits.bodyBytesMax;
    const isConnect = command === "CONNECT" || command === "STOMP";
    return (isConnect ? isOf10(headers) : this.#version === "1.0") ? this.#limits.headBytesMax : 0;
  }

  #readBody(head: Head): Buffer | undefined {
    const length = head.bodyLength ?? this.#findNul(head);
    if (length === undefined || this.#pending.length <= length) return undefined;
    if (this.#pending.at(length) !== NUL) {
      throw new FrameError("no NUL where content-length says that the frame ends", findHeader(head.headers, "receipt"));
    }
    const body = this.#pending.slice(0, length);
    this.#pending.consume(length + 1);
    this.#scanned = 0;
    return body;
  }

  #findNul(head: Head): number | undefined {
    const found = this.#pending.indexOf(NUL, this.#scanned);
    this.#scanned = found === -1 ? this.#pending.length : found;
    if (this.#scanned > head.bodyBytesMax) throw tooLongBody(head);
    return found === -1 ? undefined : found;
  }
}

/** Decodes each line by itself: a line cut from a longer string would keep the whole string in memory for as long as its header is kept. */
function toLines(bytes: Buffer): readonly string[] {
  const lines: string[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(LF, start);
    lines.push(bytes.toString("utf8", start, end));
    start = end + 1;
  }
  return lines;
}

/** Removes a carriage return before the end of a line. STOMP 1.2 allows it, and so does a CONNECT, since its version is not known yet. */
function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

function splitHeader(line: string): readonly [string, string] {
  const header = findHeaderIn(line);
  if (header !== undefined) return header;
  throw new FrameError(`${JSON.stringify(line.slice(0, 100))} is not a header: a header is name:value`);
}

/** Splits a header of CONNECT. The error quotes nothing: a line may be a part of the passcode, and the message gets into the log. */
function splitConnectHeader(line: string): readonly [string, string] {
  const header = findHeaderIn(line);
  if (header !== undefined) return header;
  throw new FrameError("a line of CONNECT is not a header: a header is name:value, and no value has an end of line");
}

function findHeaderIn(line: string): readonly [string, string] | undefined {
  const colon = line.indexOf(":");
  return colon < 1 ? undefined : [line.slice(0, colon), line.slice(colon + 1)];
}

/** @throws FrameError that names the receipt, if the frame asks for one. */
function toHeaders(lines: readonly string[], version: Version): Headers {
  try {
    return lines.map((line) => toHeader(version === "1.1" ? line : withoutReturn(line), version));
  } catch (error) {
    throw error instanceof FrameError ? new FrameError(error.message, findReceipt(lines, version)) : error;
  }
}

/** The decoded receipt; undefined if there is none, or if its header is malformed. */
function findReceipt(lines: readonly string[], version: Version): string | undefined {
  const line = lines.find((text) => text.startsWith("receipt:"));
  try {
    return line === undefined ? undefined : toHeader(version === "1.1" ? line : withoutReturn(line), version)[1];
  } catch {
    return undefined;
  }
}

function toHeader(line: string, version: Version): readonly [string, string] {
  const header = splitHeader(line);
  if (version === "1.0") return trimmed(header);
  if (version === "1.2" && line.includes("\r")) throw new FrameError("a carriage return inside a header");
  return [unescapeHeader(header[0], version), unescapeHeader(header[1], version)];
}

/** Examples in the specification of 1.0 pad headers, so its clients do. Later versions forbid padding and trimming. */
function trimmed([name, value]: readonly [string, string]): readonly [string, string] {
  return [copyOf(name.trim()), copyOf(value.trim())]; // Copies: a part would keep its whole line in memory, with its padding.
}

/** Whether a CONNECT is STOMP 1.0 ("Protocol Negotiation"). */
function isOf10(headers: Headers): boolean {
  return findHeader(headers, "accept-version") === undefined;
}

function toBodyLength(headers: Headers): number | undefined {
  const text = findHeader(headers, "content-length");
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    throw new FrameError(
      `content-length ${JSON.stringify(text.slice(0, 100))} is not a number`,
      findHeader(headers, "receipt"),
    );
  }
  return Number(text);
}

function checkCommandLength(length: number): void {
  if (length > commandBytesMax) throw new FrameError("this is not a frame of STOMP");
}

function earlyNul(): FrameError {
  return new FrameError("a NUL before the blank line that ends the headers");
}

function tooLongHead(headBytesMax: number): FrameError {
  return new FrameError(`the headers of a frame have more than ${headBytesMax} bytes`);
}

function tooLongBody({
  command,
  headers,
  bodyBytesMax,
}: Pick<Head, "command" | "headers" | "bodyBytesMax">): FrameError {
  const message =
    bodyBytesMax === 0
      ? `a ${command} must not have a body`
      : `the body of a ${command} has more than ${bodyBytesMax} bytes`;
  return new FrameError(message, findHeader(headers, "receipt"));
}
