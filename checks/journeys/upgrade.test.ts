import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { startBroker } from "../harness/broker-process.ts";
import { createTempFolder } from "../harness/temp-folder.ts";

/** What a broker of the earlier version stored in the data folder. */
interface Expected {
  readonly key: string;
  readonly events: readonly { readonly eventId: string; readonly content: string }[];
  readonly subscriptions: readonly { readonly id: string; readonly topic: string; readonly url: string }[];
}

const versions = ["0.1.0"];
const file = (name: string): string => fileURLToPath(new URL(`upgrade/${name}`, import.meta.url));

// The archive also has the config file of that broker, which turns access on.
it.each(versions)(
  "the broker opens a data folder of version %s with every event, subscription and key",
  async (version) => {
    using folder = createTempFolder();
    execFileSync("tar", ["-xzf", file(`data-${version}.tar.gz`), "-C", folder.path]);
    const expected = JSON.parse(readFileSync(file(`expected-${version}.json`), "utf8")) as Expected; // Our own file.
    const args = ["--config", join(folder.path, "stele.json"), "--deliveries", "paused"];
    await using broker = await startBroker({ dataDir: join(folder.path, "data"), args });
    const operatorsUrl = /^ {2}Operators +(\S+)$/m.exec(broker.stderr())?.[1] ?? "";
    const ask = async (path: string, url = broker.url): Promise<unknown> => {
      const headers = { authorization: `Bearer ${expected.key}` };
      return (await fetch(`${url}${path}`, { headers })).json();
    };
    const events = expected.events.map(({ eventId }) => ask(`/rest/getEvent?eventId=${eventId}`));
    expect(await Promise.all(events)).toEqual(expected.events);
    const { items } = (await ask("/admin/v1/subscriptions", operatorsUrl)) as {
      readonly items: readonly { readonly id: string }[];
    }; // As docs/admin.md describes.
    expect(byId(items)).toMatchObject(byId(expected.subscriptions));
    expect(await ask("/rest/state?topic=orders/new")).toMatchObject({ sequenceNumber: 3 });
    expect(await ask("/rest/publish?topic=orders/new&content=later")).toMatchObject({ status: "SUCCESS" });
    expect(await ask("/rest/publish?topic=plant/boiler&content=closed")).toHaveProperty("code");
    const refused = await fetch(`${broker.url}/rest/state?topic=orders/new`, {
      headers: { authorization: "Bearer none" },
    });
    expect(await refused.json()).toHaveProperty("code");
  },
);

function byId(all: readonly { readonly id: string }[]): readonly { readonly id: string }[] {
  return all.toSorted((left, right) => (left.id < right.id ? -1 : 1));
}
