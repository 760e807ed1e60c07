import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import type { Case } from "./case.ts";
import { connectCases } from "./cases/connect.ts";
import { frameCases } from "./cases/frames.ts";
import { publishCases } from "./cases/publish.ts";
import { subscribeCases } from "./cases/subscribe.ts";
import { transactionCases } from "./cases/transactions.ts";
import { Context } from "./context.ts";
import { versions } from "./frames.ts";
import type { Addresses } from "./peer.ts";
import { statements } from "./statements.ts";

const cases: readonly Case[] = [
  ...connectCases,
  ...frameCases,
  ...publishCases,
  ...subscribeCases,
  ...transactionCases,
];

let folder: TempFolder;
let broker: BrokerProcess;
let addresses: Addresses;
beforeAll(async () => {
  folder = createTempFolder();
  // The cases ask for heart-beats every 300 ms.
  broker = await startBroker({
    dataDir: folder.path,
    env: { STELE_STOMP_PORT: "0", STELE_STOMP_HEART_BEAT_MS: "300" },
  });
  const [, port] = /^ {2}STOMP +stomp:.*:(\d+)$/m.exec(broker.stderr()) ?? [];
  addresses = { tcp: Number(port), websocket: `${broker.url.replace(/^http/, "ws")}/stomp` };
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

describe.each(["tcp", "websocket"] as const)("over %s", (transport) => {
  describe.each(["frames", "bytes"] as const)("cut into %s", (cut) => {
    describe.each(versions)("STOMP %s", (version) => {
      const rows = cases.flatMap((one, index) => {
        const covered = one.covers[version] ?? [];
        return covered.length === 0 ? [] : [[`${one.name} [${covered.join(", ")}]`, one, index] as const];
      });
      it.concurrent.each(rows)("%s", async (_, one, index) => {
        const name = `${transport}-${cut}-${version}-${index}`;
        const context = new Context({ addresses, transport, version, cut, name });
        try {
          await one.run(context);
        } finally {
          context.close();
        }
      });
    });
  });
});

describe.each(versions)("the statements of %s", (version) => {
  const covered = new Set(cases.flatMap((one) => one.covers[version] ?? []));

  it("each statement is covered by a case, and no case covers an unknown statement", () => {
    expect([...covered].toSorted()).toEqual(Object.keys(statements[version]).toSorted());
  });
});

it("docs/stomp-conformance.md names the case that covers each statement (update it with --update)", async () => {
  const lines = versions.flatMap((version) => {
    const rows = Object.entries(statements[version]).map(([id, text]) => {
      const checkers = cases.filter((one) => one.covers[version]?.includes(id) === true).map(({ name }) => name);
      return `| ${id} | ${text.replaceAll("|", "\\|")} | ${checkers.join("; ")} |`;
    });
    return ["", `## STOMP ${version}`, "", "| Statement | What it says | Checked by |", "|---|---|---|", ...rows];
  });
  const head = [
    "<!-- Written by the conformance suite: npx vitest run checks/conformance/stomp --update -->",
    "# STOMP conformance",
    "",
    "Each normative statement of the three specifications that concerns a server, named by its section, and the case in `checks/conformance/stomp` that checks it. Every case runs over TCP and over WebSocket, with frames in one piece and byte by byte.",
  ];
  await expect(`${[...head, ...lines].join("\n")}\n`).toMatchFileSnapshot("../../../docs/stomp-conformance.md");
});
