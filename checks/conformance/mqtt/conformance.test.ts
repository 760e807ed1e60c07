import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { createTempFolder, type TempFolder } from "../../harness/temp-folder.ts";
import { type Case, statementsOf } from "./case.ts";
import { connectCases } from "./cases/connect.ts";
import { malformedCases } from "./cases/malformed.ts";
import { publishCases } from "./cases/publish.ts";
import { retainedCases } from "./cases/retained.ts";
import { sessionCases } from "./cases/session.ts";
import { shareCases } from "./cases/share.ts";
import { subscribeCases } from "./cases/subscribe.ts";
import { webSocketCases } from "./cases/websocket.ts";
import { Context } from "./context.ts";
import type { Addresses, Transport } from "./peer.ts";
import { allStatements, uncovered } from "./statements.ts";

const overAnything: readonly Case[] = [
  ...malformedCases,
  ...connectCases,
  ...publishCases,
  ...subscribeCases,
  ...sessionCases,
  ...shareCases,
  ...retainedCases,
];
const cases: Readonly<Record<Transport, readonly Case[]>> = {
  tcp: overAnything,
  websocket: [...overAnything, ...webSocketCases],
};
const titles = { 4: "3.1.1", 5: "5.0" } as const;

let folder: TempFolder;
let broker: BrokerProcess;
let addresses: Addresses;
beforeAll(async () => {
  folder = createTempFolder();
  broker = await startBroker({ dataDir: folder.path, env: { STELE_MQTT_PORT: "0", STELE_MQTT_RECEIVE_MAX: "50" } });
  const [, port] = /^ {2}MQTT +mqtt:.*:(\d+)$/m.exec(broker.stderr()) ?? [];
  addresses = { tcp: Number(port), websocket: `${broker.url.replace(/^http/, "ws")}/mqtt` };
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

describe.each(["tcp", "websocket"] as const)("over %s", (transport) => {
  describe.each([4, 5] as const)("level %s", (version) => {
    const rows = cases[transport].filter((one) => statementsOf(one, version).length > 0);
    const named = rows.map((one, index) => {
      const statements = statementsOf(one, version).map((statement) => `[MQTT-${statement}]`);
      return [`MQTT ${titles[version]}: ${one.name} ${statements.join(" ")}`, one, index] as const;
    });
    it.concurrent.each(named)("%s", async (_, one, index) => {
      const name = `${transport}${version}-${index}`;
      const context = new Context({ addresses, transport, version, name });
      try {
        await one.run(context);
      } finally {
        context.close();
      }
    });
  });
});

describe.each([4, 5] as const)("the statements of level %s", (version) => {
  const covered = new Set(cases.websocket.flatMap((one) => statementsOf(one, version)));

  it("each statement is covered by a case, or listed as uncovered with a reason", () => {
    const missing = allStatements(version).filter((one) => !covered.has(one) && uncovered[version][one] === undefined);
    expect(missing).toEqual([]);
  });

  it("no statement is both covered and listed as uncovered, and all of them exist in the standard", () => {
    expect(Object.keys(uncovered[version]).filter((one) => covered.has(one))).toEqual([]);
    const known = new Set(allStatements(version));
    expect([...covered, ...Object.keys(uncovered[version])].filter((one) => !known.has(one))).toEqual([]);
  });
});

it("docs/mqtt-conformance.md names the case that covers each statement (update it with --update)", async () => {
  const lines = ([4, 5] as const).flatMap((version) => {
    const rows = allStatements(version).map((statement) => {
      const checkers = cases.websocket.filter((one) => statementsOf(one, version).includes(statement));
      const text = checkers.map(({ name }) => name).join("; ");
      return `| MQTT-${statement} | ${text === "" ? `no case: ${uncovered[version][statement]}` : text} |`;
    });
    return ["", `## MQTT ${titles[version]}`, "", "| Statement | Checked by |", "|---|---|", ...rows];
  });
  const head = [
    "<!-- Written by the conformance suite: npx vitest run checks/conformance/mqtt --update -->",
    "# MQTT conformance",
    "",
    "Each normative statement of the two standards, and the case in `checks/conformance/mqtt` that checks it. Every case runs over TCP and over WebSocket.",
  ];
  await expect(`${[...head, ...lines].join("\n")}\n`).toMatchFileSnapshot("../../../docs/mqtt-conformance.md");
});
