import { INSTRUCTIONS } from "./instructions.ts";
import type { Ending, Machine } from "./machine.ts";

/** Most words on the stack (Yellow Paper, section 9.1). */
const STACK_WORDS_MAX = 1_024;

/** Runs the machine's code to its end, which code that runs out is as well. */
export function run(machine: Machine): Ending {
  const { code } = machine.program;
  const { stack } = machine;
  while (machine.ending === undefined) {
    const instruction = INSTRUCTIONS[code[machine.at] ?? 0];
    if (instruction === undefined) return "left";
    if (stack.length < instruction.needs || stack.length + instruction.grows > STACK_WORDS_MAX) return "left";
    machine.at += 1;
    if (!machine.charge(instruction.gas)) return "left";
    instruction.run(machine);
  }
  return machine.ending;
}
