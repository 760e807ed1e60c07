import { toBuffer } from "@stele/eth/node";
import { Lru } from "../../lib/lru.ts";
import { PROGRAM_CACHE_CONTRACTS_MAX } from "../../limits.ts";
import { readBlock } from "./blocks.ts";
import type { Block, Code, Program } from "./machine.ts";
import { fromBytes, type Word } from "./word.ts";

const PUSH1 = 0x60;
const PUSH32 = 0x7f;
const JUMPDEST = 0x5b;

/** Code whose blocks are read when they first run. */
class ReadProgram implements Program {
  readonly code: Code;
  readonly #blocks: (Block | undefined)[] = [];

  constructor(bytes: Buffer) {
    this.code = analyse(bytes);
  }

  blockAt(at: number): Block | undefined {
    const known = this.#blocks[at];
    if (known !== undefined) return known;
    const block = readBlock(this.code, at);
    this.#blocks[at] = block;
    return block;
  }
}

/** Programs by the hash of their code. */
export class Programs {
  readonly #programs = new Lru<string, Program>({ entriesMax: PROGRAM_CACHE_CONTRACTS_MAX });

  get(codeHash: Uint8Array, readCode: () => Uint8Array): Program {
    const key = toBuffer(codeHash).toString("latin1");
    const known = this.#programs.get(key);
    if (known !== undefined) return known;
    const program = new ReadProgram(toBuffer(readCode()));
    this.#programs.set(key, program);
    return program;
  }
}

function analyse(bytes: Buffer): Code {
  const targets = new Uint8Array(bytes.length);
  const pushes = Array.from<Word>({ length: bytes.length }).fill(0);
  for (let at = 0; at < bytes.length; at += 1) {
    const instruction = bytes[at] ?? 0;
    if (instruction === JUMPDEST) targets[at] = 1;
    if (instruction < PUSH1 || instruction > PUSH32) continue;
    const length = instruction - PUSH1 + 1;
    const pushed = Buffer.alloc(length); // zeros complete a PUSH at the end of the code
    bytes.copy(pushed, 0, at + 1, at + 1 + length);
    pushes[at] = fromBytes(pushed);
    at += length;
  }
  return { bytes, targets, pushes };
}
