import { toBuffer } from "@stele/eth/node";
import { Lru } from "../../lib/lru.ts";
import { PROGRAM_CACHE_CONTRACTS_MAX } from "../../limits.ts";
import { fromBytes, type Word } from "./word.ts";

const PUSH1 = 0x60;
const PUSH32 = 0x7f;
const JUMPDEST = 0x5b;

/** A contract's code, analysed once. */
export interface Program {
  readonly code: Buffer;
  /** 1 where a jump may land. */
  readonly targets: Uint8Array;
  /** What the PUSH at a place pushes. */
  readonly pushes: readonly Word[];
}

/** Programs by the hash of their code. */
export class Programs {
  readonly #programs = new Lru<string, Program>({ entriesMax: PROGRAM_CACHE_CONTRACTS_MAX });

  get(codeHash: Uint8Array, readCode: () => Uint8Array): Program {
    const key = toBuffer(codeHash).toString("latin1");
    const known = this.#programs.get(key);
    if (known !== undefined) return known;
    const program = analyse(toBuffer(readCode()));
    this.#programs.set(key, program);
    return program;
  }
}

export function analyse(code: Buffer): Program {
  const targets = new Uint8Array(code.length);
  const pushes = Array.from<Word>({ length: code.length }).fill(0);
  for (let at = 0; at < code.length; at += 1) {
    const instruction = code[at] ?? 0;
    if (instruction === JUMPDEST) targets[at] = 1;
    if (instruction < PUSH1 || instruction > PUSH32) continue;
    const length = instruction - PUSH1 + 1;
    const bytes = Buffer.alloc(length); // code that ends within a PUSH goes on with zeros
    code.copy(bytes, 0, at + 1, at + 1 + length);
    pushes[at] = fromBytes(bytes);
    at += length;
  }
  return { code, targets, pushes };
}
