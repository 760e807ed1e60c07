import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import solc from "solc";
import type { Abi, Hex } from "viem";

const name = "EventVerifier";
const settings = { evmVersion: "london", outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } } };
const resolve = createRequire(import.meta.url).resolve;

interface Compiled {
  readonly errors?: readonly { readonly formattedMessage: string }[];
  readonly contracts: Readonly<
    Record<string, Record<string, { abi: Abi; evm: { readonly bytecode: { readonly object: string } } }>>
  >;
}

/** Compiles sol/testing/EventVerifier.sol with the installed OpenZeppelin contracts. */
export function compileEventVerifier(): { readonly abi: Abi; readonly bytecode: Hex } {
  const content = readFileSync(new URL(`../../sol/testing/${name}.sol`, import.meta.url), "utf8");
  const input = { language: "Solidity", sources: { [name]: { content } }, settings };
  const compiled = JSON.parse(solc.compile(JSON.stringify(input), { import: readImport })) as Compiled; // The compiler's output.
  const contract = compiled.contracts?.[name]?.[name];
  if (contract === undefined || compiled.errors !== undefined) throw new Error(JSON.stringify(compiled.errors));
  return { abi: contract.abi, bytecode: `0x${contract.evm.bytecode.object}` };
}

function readImport(path: string): { readonly contents: string } {
  return { contents: readFileSync(resolve(path), "utf8") };
}
