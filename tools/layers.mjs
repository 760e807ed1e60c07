// The import table of ARCHITECTURE.md as data. `.oxlintrc.json` is written from it by `node tools/layers.mjs --write`,
// and `npm run check` fails when the two differ.
import { readFileSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";

/** Each workspace, and the workspaces that it may import. */
const workspaces = {
  eth: [],
  wire: ["eth"],
  contracts: [],
  chain: ["eth"],
  client: ["wire"],
  console: ["client", "wire"],
  broker: ["eth", "wire", "contracts", "chain", "client"],
  checks: ["eth", "wire", "contracts", "chain", "client", "broker"],
};

/** Each folder of broker/src, and what it may import: folders beside it, or workspaces as `@name`. */
const brokerFolders = {
  lib: [],
  domain: ["lib", "@wire"],
  ports: ["domain", "@wire"],
  engine: ["ports", "domain", "lib", "@eth", "@wire"],
  gateway: ["engine", "domain", "lib", "@wire"],
  ledger: ["ports", "domain", "lib", "@contracts", "@eth", "@wire"],
  store: ["ports", "domain", "lib", "@wire"],
  sink: ["ports", "domain", "lib", "@wire"],
  telemetry: ["ports", "lib"],
  tokens: ["ports", "lib"],
  backup: ["lib"],
  config: ["domain", "lib", "@wire"],
  verify: ["ledger", "domain", "lib", "cli", "@client", "@contracts", "@eth", "@wire"],
  cli: ["lib", "@client", "@wire"],
};

/** The folder that connects all others: it may import every folder, and none imports it. */
brokerFolders.compose = [...Object.keys(brokerFolders), ...workspaces.broker.map((name) => `@${name}`)];

/** Folders whose children must not import one another. */
const separateChildren = {
  gateway: ["rest", "jsonrpc", "chain", "mqtt", "stomp", "admin", "tail", "console"],
  ledger: ["evm", "memory"],
  store: ["sql", "memory"],
  sink: ["webhook", "session"],
};

/** Each folder of broker/src/engine, and the ones beside it that it may import. Files of the engine itself may be imported by all. */
const engineFolders = {
  access: [],
  publish: [],
  dispatch: [],
  integrity: [],
  retention: ["integrity"],
  deliver: ["dispatch", "integrity"],
  query: ["deliver"],
  subscribe: ["access", "deliver", "integrity", "query"],
  cluster: ["deliver", "subscribe"],
  follow: ["cluster", "deliver", "dispatch"],
  topics: ["publish"],
  operate: ["access", "deliver", "integrity", "query", "subscribe"],
  session: ["access", "dispatch"],
  tenants: ["access", "session"],
};

/** Folders that receive clock, randomness, environment, disk and network as ports. */
const pureFolders = ["domain", "engine"];
const outsidePackages = Object.keys(
  JSON.parse(readFileSync(new URL("../broker/package.json", import.meta.url), "utf8")).dependencies,
).filter((name) => !name.startsWith("@stele/"));

const workspaceGroup = (name) => [`@stele/${name}`, `@stele/${name}/*`];
const folderGroup = (name) => [`**/${name}/**`];

function restriction(group, message) {
  return { group, message };
}

function override(files, patterns, paths = []) {
  return { files, rules: { "no-restricted-imports": ["error", { patterns, paths }] } };
}

function workspaceOverride([name, allowed]) {
  const foreign = Object.keys(workspaces).filter((other) => other !== name && !allowed.includes(other));
  const message = `${name}/ may import only: ${allowed.join(", ") || "nothing of ours"}.`;
  return override(name === "console" ? ["console/**/*.ts", "console/**/*.tsx"] : [`${name}/**/*.ts`], [
    ...foreign.map((other) => restriction(workspaceGroup(other), message)),
    ...(name === "wire" ? [restriction(["@stele/eth/node"], "wire/ also runs in browsers.")] : []),
  ]);
}

function folderPatterns(name, allowed) {
  const message = `broker/src/${name} may import only: ${allowed.join(", ") || "nothing of ours"}.`;
  const folders = Object.keys(brokerFolders).filter((other) => other !== name && !allowed.includes(other));
  const foreign = Object.keys(workspaces).filter((other) => !allowed.includes(`@${other}`));
  const outside = ["@stele/eth/node", "node:*", "node:*/**", ...builtinModules, ...outsidePackages, "**/lib/system/**"];
  const pure = pureFolders.includes(name)
    ? [
        restriction(
          outside,
          `broker/src/${name} may import no modules of Node.js, no packages and no lib/system: it gets the clock, the disk and the network as ports.`,
        ),
      ]
    : [];
  return [
    ...folders.map((other) => restriction(folderGroup(other), message)),
    ...foreign.map((other) => restriction(workspaceGroup(other), message)),
    ...pure,
  ];
}

function folderOverrides([name, allowed]) {
  const base = override([`broker/src/${name}/**/*.ts`], folderPatterns(name, allowed));
  const children = (separateChildren[name] ?? []).map((child) => {
    const siblings = separateChildren[name].filter((other) => other !== child);
    const message = `broker/src/${name}/${child} may not import its siblings.`;
    const own = siblings.map((other) => restriction([`**/${other}/**`], message));
    return override([`broker/src/${name}/${child}/**/*.ts`], [...folderPatterns(name, allowed), ...own]);
  });
  return [base, ...children];
}

function engineOverrides() {
  return Object.entries(engineFolders).map(([folder, allowed]) => {
    const message = `broker/src/engine/${folder} may import only these folders of the engine: ${allowed.join(", ") || "none"}.`;
    const others = Object.keys(engineFolders).filter((other) => other !== folder && !allowed.includes(other));
    const own = others.map((other) => restriction([`../${other}/**`, `../../${other}/**`], message));
    return override(
      [`broker/src/engine/${folder}/**/*.ts`],
      [...folderPatterns("engine", brokerFolders.engine), ...own],
    );
  });
}

/** The folders of an import cycle; undefined if the table has none. */
function findCycle(table) {
  const visit = (folder, path) => {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    for (const next of table[folder] ?? []) {
      const cycle = visit(next, [...path, folder]);
      if (cycle !== undefined) return cycle;
    }
    return undefined;
  };
  for (const folder of Object.keys(table)) {
    const cycle = visit(folder, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

const purityRules = {
  files: pureFolders.flatMap((name) => [`broker/src/${name}/**/*.ts`]),
  excludeFiles: ["**/*.test.ts"],
  rules: {
    "no-restricted-globals": [
      "error",
      "process",
      "setTimeout",
      "setInterval",
      "setImmediate",
      "fetch",
      "performance",
      "crypto",
      "Date",
      "globalThis",
    ],
    "no-restricted-properties": ["error", { object: "Math", property: "random", message: "Use the Randomness port." }],
  },
};

/** The console is a client like any other: it calls the broker only through `@stele/client`. It never turns text into markup. */
const consoleRules = {
  files: ["console/**/*.ts", "console/**/*.tsx"],
  excludeFiles: ["**/*.test.ts"],
  plugins: ["typescript", "import", "unicorn", "promise", "react", "jsx-a11y"],
  rules: {
    "no-restricted-globals": ["error", "fetch", "XMLHttpRequest", "WebSocket", "EventSource", "localStorage"],
    "react/no-danger": "error",
    "react/jsx-no-target-blank": "error",
    "react/rules-of-hooks": "error",
    "react/exhaustive-deps": "error",
    "react/react-in-jsx-scope": "off",
    // We set roles such as status and search on the element that the layout has anyway, such as a <p> or a <form>, not on a tag of their own.
    "jsx-a11y/prefer-tag-over-role": "off",
    // A scrolling element must be reachable by keyboard.
    "jsx-a11y/no-noninteractive-tabindex": "off",
  },
};

// Tests may import more: an adapter runs a contract suite, and an engine test uses the memory adapters.
const testFreedom = {
  files: ["**/*.test.ts", "**/*.contract.ts", "**/testing/**/*.ts", "checks/**/*.ts"],
  rules: {
    "no-restricted-imports": "off",
    "no-restricted-globals": "off",
    "max-lines-per-function": "off",
    "typescript/unbound-method": "off",
  },
};

export const oxlintConfig = {
  $schema: "./node_modules/oxlint/configuration_schema.json",
  plugins: ["typescript", "import", "unicorn", "promise", "node"],
  categories: { correctness: "error", suspicious: "error" },
  ignorePatterns: ["**/dist/**", "**/*.generated.ts"],
  rules: {
    "typescript/no-floating-promises": "error",
    "typescript/no-misused-promises": "error",
    "typescript/no-explicit-any": "error",
    "typescript/no-non-null-assertion": "error",
    "typescript/consistent-type-imports": "error",
    "typescript/no-unsafe-type-assertion": "off",
    "import/no-cycle": ["error", { ignoreTypes: false }],
    "import/no-default-export": "error",
    "import/no-unassigned-import": "off",
    "import/no-named-as-default-member": "off",
    "no-await-in-loop": "off",
    "no-shadow": "off",
    "no-underscore-dangle": "off",
    "no-console": "error",
    "max-lines": ["error", { max: 400, skipBlankLines: false, skipComments: false }],
    "max-lines-per-function": ["error", { max: 70, skipBlankLines: true, skipComments: true }],
    "max-depth": ["error", 3],
    "max-params": ["error", { max: 3 }],
    eqeqeq: "error",
  },
  overrides: [
    ...Object.entries(workspaces).map(workspaceOverride),
    ...Object.entries(brokerFolders).flatMap(folderOverrides),
    ...engineOverrides(),
    purityRules,
    consoleRules,
    testFreedom,
    override(
      ["checks/**/*.ts"],
      [restriction(["**/{eth,wire,contracts,chain,client,broker}/src/**"], "checks/ may use only the public entries.")],
    ),
    {
      files: ["**/vitest.config.ts", "tools/**", "examples/**", "site/**"],
      rules: {
        "import/no-default-export": "off",
        "no-console": "off",
        "typescript/restrict-template-expressions": "off",
      },
    },
  ],
};

for (const table of [workspaces, brokerFolders, engineFolders]) {
  const cycle = findCycle(table);
  if (cycle === undefined) continue;
  console.error(`The import table has a cycle: ${cycle.join(" → ")}.`);
  process.exitCode = 1;
}

const text = `${JSON.stringify(oxlintConfig, null, 2)}\n`;
const file = new URL("../.oxlintrc.json", import.meta.url);
if (process.argv.includes("--write")) writeFileSync(file, text);
else if (JSON.stringify(JSON.parse(readFileSync(file, "utf8"))) !== JSON.stringify(oxlintConfig)) {
  console.error(".oxlintrc.json differs from tools/layers.mjs: run `node tools/layers.mjs --write`.");
  process.exitCode = 1;
}
