import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../harness/until.ts";
import { whenClosed } from "../harness/when-closed.ts";
import { AccessWorld } from "./support/access-world.ts";

const flooder = "127.0.0.2";
const tries = 3_000;
const triesAtOnce = 500;
/** Honest calls during the flood. */
const quietCalls = 50;

let world: AccessWorld;
beforeAll(async () => {
  world = await AccessWorld.start();
});
afterAll(() => world[Symbol.asyncDispose]());

function connectFrom(localAddress: string): Socket {
  const socket = connect({ host: "127.0.0.1", port: Number(new URL(world.broker.url).port), localAddress });
  return socket.on("error", () => {}); // The broker may reset the connection.
}

const requestWith = (credential: string, more = ""): string =>
  `GET /rest/state?topic=t/a HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${credential}\r\n${more}\r\n`;

/** Makes one wrong log-in on a new connection; returns the answer, or an empty text if the broker resets the connection. */
async function tryOnce(localAddress: string): Promise<string> {
  const socket = connectFrom(localAddress);
  const closed = whenClosed(socket);
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.write(requestWith(`stele_${"0".repeat(16)}_${"A".repeat(43)}`, "connection: close\r\n"));
  await closed;
  return text;
}

async function flood(): Promise<readonly string[]> {
  const answers: string[] = [];
  let left = tries;
  const run = async (): Promise<void> => {
    for (; left > 0; ) {
      left -= 1;
      answers.push(await tryOnce(flooder));
    }
  };
  await Promise.all(Array.from({ length: triesAtOnce }, run));
  return answers;
}

/** Wrong log-ins that the broker has read and refused, as its log counts them. */
function countJudged(): number {
  const lines = world.broker.stdout().split("\n");
  const found = lines.filter((line) => line.includes('"log-in refused"')).map((line) => JSON.parse(line) as object);
  return found.reduce((sum, line) => sum + 1 + ("omitted" in line ? Number(line.omitted) : 0), 0);
}

it("the broker resets a part of a flood of wrong log-ins unread, and serves clients with a key, even from the same address", async () => {
  const steady = connectFrom(flooder);
  const ask = async (): Promise<string> => {
    steady.write(requestWith(world.credential("client") ?? ""));
    return String((await once(steady, "data"))[0]);
  };
  expect(await ask()).toContain("sequenceNumber");
  const before = countJudged();
  const flooding = flood();
  const quiet = world.http("client");
  for (let count = 0; count < quietCalls; count += 1) {
    const answer = await quiet.send({ method: "GET", path: "/rest/state?topic=t/a" });
    expect(answer.json()).toHaveProperty("sequenceNumber");
    expect(await ask()).toContain("sequenceNumber");
  }
  const answers = await flooding;
  steady.destroy();

  const answered = answers.filter((text) => text !== "");
  for (const text of answered) expect(text).toContain('"code":100701');
  expect(answered.length).toBeLessThan(tries);
  await until("the log says how many refusals it has left out", async () => {
    await tryOnce("127.0.0.1");
    return world.broker.stdout().includes('"address":"127.0.0.1","protocol":"HTTP"');
  });
  expect(countJudged() - before).toBeGreaterThanOrEqual(answered.length);
  expect(countJudged() - before).toBeLessThan(tries);
});

it("after the flood, the broker answers the flooder's address again", async () => {
  await until("the address is answered again", async () => (await tryOnce(flooder)).includes('"code":100701'));
});
