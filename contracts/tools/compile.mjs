// Compiles sol/ and writes src/artifacts.generated.ts; with --check it compares the two and writes nothing.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import solc from "solc";

const contracts = ["Topic", "TopicRegistry"];
const sourceNames = [...contracts, "TopicState", "WriterSets"];
const artifactsFile = new URL("../src/artifacts.generated.ts", import.meta.url);

// Private chains support London, which has no PUSH0. Without the metadata hash, a changed comment or folder name does not change the bytecode.
const settings = {
  evmVersion: "london",
  viaIR: true,
  optimizer: { enabled: true, runs: 1_000_000 },
  metadata: { bytecodeHash: "none" },
  outputSelection: {
    "*": {
      "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object", "evm.deployedBytecode.immutableReferences"],
    },
  },
};

function readSource(name) {
  return readFileSync(new URL(`../sol/${name}.sol`, import.meta.url), "utf8").replaceAll("\r\n", "\n");
}

function hashSources(sources) {
  return createHash("sha256").update(JSON.stringify({ sources, settings })).digest("hex");
}

function compile(sources) {
  const input = { language: "Solidity", sources, settings };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const complaints = (output.errors ?? []).map((error) => error.formattedMessage);
  if (complaints.length > 0) throw new Error(complaints.join("\n"));
  return output.contracts;
}

function renderContract(name, compiled) {
  const { abi, evm } = compiled[`${name}.sol`][name];
  const prefix = name.charAt(0).toLowerCase() + name.slice(1);
  return [
    `export const ${prefix}Abi = ${JSON.stringify(abi, null, 2)} as const;`,
    `export const ${prefix}Bytecode = "0x${evm.bytecode.object}";`,
  ].join("\n\n");
}

/** The registry's code after its deployment, with zeros for the immutables. */
function renderRegistryCode(compiled) {
  const { object, immutableReferences } = compiled["TopicRegistry.sol"].TopicRegistry.evm.deployedBytecode;
  const hash = createHash("sha256").update(Buffer.from(object, "hex")).digest("hex");
  const immutables = Object.values(immutableReferences)
    .flat()
    .map(({ start, length }) => [start, length])
    .toSorted(([left], [right]) => left - right);
  const doc =
    "/** SHA-256 of the registry's code with zeros for its immutables, and the offset and length of each immutable, in bytes. */";
  return `${doc}\nexport const topicRegistryCode = ${JSON.stringify({ hash, immutables }, null, 2)} as const;`;
}

function renderArtifacts() {
  const sources = Object.fromEntries(sourceNames.map((name) => [`${name}.sol`, { content: readSource(name) }]));
  const compiled = compile(sources);
  return `${[
    "// Written by tools/compile.mjs from sol/; do not edit.",
    `export const compilerVersion = ${JSON.stringify(solc.version())};`,
    `/** SHA-256 of the sources and the compiler's settings. */\nexport const sourcesHash = "${hashSources(sources)}";`,
    ...contracts.map((name) => renderContract(name, compiled)),
    renderRegistryCode(compiled),
  ].join("\n\n")}\n`;
}

const artifacts = renderArtifacts();
if (!process.argv.includes("--check")) writeFileSync(artifactsFile, artifacts);
else if (readFileSync(artifactsFile, "utf8") !== artifacts) {
  process.stderr.write("src/artifacts.generated.ts differs from sol/: run `npm run compile -w @stele/contracts`.\n");
  process.exitCode = 1;
}
