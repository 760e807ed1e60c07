import type { TopicInfo, TopicState } from "@stele/wire";
import type { Command } from "commander";
import type { CliIo } from "../io.ts";
import type { Column } from "../output.ts";
import { define } from "./define.ts";

const infoColumns: readonly Column<TopicInfo>[] = [
  { title: "TOPIC", of: ({ topicName }) => topicName },
  { title: "OPENED", of: ({ createdTimestamp }) => new Date(createdTimestamp).toISOString() },
  { title: "ADDRESS", of: ({ topicAddress }) => topicAddress },
];

const stateColumns: readonly Column<TopicState>[] = [
  ...infoColumns,
  { title: "SENDER", of: ({ senderAddress }) => senderAddress },
  { title: "EVENTS", of: ({ sequenceNumber }) => sequenceNumber },
  { title: "BLOCK", of: ({ blockNumber }) => blockNumber },
];

export function defineTopics(program: Command, io: CliIo): void {
  const topics = program.command("topics").description("Lists, shows, opens and closes topics.");
  define(topics, io, {
    usage: "list",
    summary: "Lists all topics, in the order in which they were opened.",
    examples: ["stele topics list", "stele topics list -o ndjson | jq -r .topicName"],
    run: async ({ stele, output, signal }) => void (await output.rows(stele.topics({ signal }), infoColumns)),
  });
  define(topics, io, {
    usage: "show <topic>",
    summary: "Shows a topic with the number of its events and its latest block.",
    examples: ["stele topics show orders/new"],
    run: async ({ stele, output, signal }, { words: [topic = ""] }) =>
      output.record(await stele.state(topic, { signal }), stateColumns),
  });
  for (const order of ["open", "close"] as const) {
    define(topics, io, {
      usage: `${order} <topics...>`,
      summary: order === "open" ? "Opens topics." : "Closes topics: their events stay readable.",
      examples: [`stele topics ${order} orders/new orders/paid`],
      changes: () => true,
      run: async ({ stele, output, signal }, { words }) => {
        const rows = async function* () {
          for (const topic of words) {
            await stele[order](topic, { signal });
            yield { topic, state: order === "open" ? "open" : "closed" };
          }
        };
        await output.rows(rows(), [
          { title: "TOPIC", of: ({ topic }) => topic },
          { title: "STATE", of: ({ state }) => state },
        ]);
      },
    });
  }
}
