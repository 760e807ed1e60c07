import { readFileSync } from "node:fs";
import { BrokerError, operationNames, restPathOf } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { parseCurl } from "./testing/curl.ts";
import { sampleTopic } from "./testing/recording-broker.ts";
import { serve } from "./testing/serve.ts";

const pages = ["rest.md", "jsonrpc.md"] as const;
const documentedBase = "http://127.0.0.1:8080";

/** Each command of a page with the answer that the page gives for it. */
function readExamples(page: string) {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), "utf8");
  return [...text.matchAll(/```sh\n(curl .*?)\n```\n\n```(json|text)\n(.*?)\n```/gs)].map(
    ([, command = "", kind = "", answer = ""]) => ({ command, kind, answer }),
  );
}

describe.each(pages)("docs/%s", (page) => {
  const examples = readExamples(page);

  it("has an example of every operation", () => {
    const commands = examples.map(({ command }) => command).join("\n");
    const missing = operationNames.filter((name) => !new RegExp(`${restPathOf(name)}\\b|"${name}"`).test(commands));
    expect(missing).toEqual([]);
  });

  it.each(examples)("gets the documented answer to: $command", async ({ command, kind, answer }) => {
    await using server = await serve({
      state: (_, call) =>
        call.topic === "nothing"
          ? Promise.reject(new BrokerError("topicNotExist", { details: '"nothing"' }))
          : Promise.resolve(sampleTopic),
    });
    const { url, init } = parseCurl(command);
    const response = await fetch(url.replace(documentedBase, server.url), init);
    const text = await response.text();
    const host = new URL(server.url).host;
    const actual = text.replaceAll(host, new URL(documentedBase).host);
    if (kind === "text") expect(actual).toBe(answer);
    else expect(JSON.parse(actual)).toEqual(JSON.parse(answer));
  });
});
