import type { Ending, Machine } from "./machine.ts";

/** Maximum number of words on the stack (Yellow Paper, section 9.1). */
const STACK_WORDS_MAX = 1_024;

/** Runs the machine's code until it succeeds or must be left to the EVM, for example because gas or stack do not suffice for the next block. */
export function run(machine: Machine): Ending {
  const { program, stack } = machine;
  for (;;) {
    const block = program.blockAt(machine.at);
    if (block === undefined || stack.length < block.needs || stack.length + block.grows > STACK_WORDS_MAX)
      return "left";
    if (!machine.charge(block.gas)) return "left";
    machine.at = block.next;
    for (const step of block.steps) {
      step(machine);
      if (machine.ending !== undefined) return machine.ending;
    }
  }
}
