import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Stele } from "@stele/client";
import { afterEach, describe, expect, it } from "vitest";
import { findProgram } from "../harness/find-program.ts";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const file = (name: string): string => fileURLToPath(new URL(`../../docs/receivers/${name}`, import.meta.url));
const python = process.env["CHECKS_PYTHON"] ?? "python3";
const hasPython = process.env["CHECKS_PYTHON"] !== undefined || findProgram(python) !== undefined;
const running = useWorld(embeddedWorld);

/** A receiver of docs/receivers, in a separate process. */
class Example {
  output = "";
  /** Resolves with the receiver's exit code. */
  readonly ended: Promise<unknown>;
  readonly #child: ChildProcess;

  constructor(command: readonly [string, string], secret: string) {
    const [program, script] = command;
    const env = { ...process.env, PORT: "0", SECRET: secret };
    this.#child = spawn(program, [script], { env, stdio: ["ignore", "pipe", "inherit"] });
    this.ended = once(this.#child, "close").then(([code]: readonly unknown[]) => code);
    this.#child.stdout?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
  }

  async url(): Promise<string> {
    return until("the receiver listens", () => {
      const port = /^listening (\d+)$/m.exec(this.output)?.[1];
      return port && `http://127.0.0.1:${port}/`;
    });
  }

  /** The lines of the events that the receiver has handled. Ignores the last line until all of it has arrived. */
  lines(): readonly string[] {
    const whole = this.output.split("\n").slice(0, -1);
    return whole.filter((line) => line !== "" && !line.startsWith("listening"));
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}

const examples: Example[] = [];
afterEach(() => {
  for (const example of examples.splice(0)) example.end();
});

function start(command: readonly [string, string], secret: string): Example {
  const example = new Example(command, secret);
  examples.push(example);
  return example;
}

const commands = [
  { name: "Node.js", command: [process.execPath, file("receiver.mjs")], canRun: true },
  { name: "Python", command: [python, file("receiver.py")], canRun: hasPython },
] as const;

function createSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

describe.each(commands.filter(({ canRun }) => canRun))("the receiver in $name", ({ name, command }) => {
  const topic = `receivers/${name}`;

  it("the receiver handles each event once and in order", async () => {
    const secret = createSecret();
    const { client } = running();
    const receiver = start(command, secret);
    await client.open(topic);
    // Two subscriptions send each event twice.
    for (const place of ["a", "b"]) await client.subscribe({ topic, secret, url: `${await receiver.url()}${place}` });
    const sent: string[] = [];
    for (const content of ["one", "zwei ä", "{}"]) {
      const { eventId } = await client.publish(topic, content);
      sent.push(`${eventId} ${topic} ${content}`);
      await until("the event is handled", () => receiver.lines().includes(sent.at(-1) ?? ""));
    }
    await until("the broker counts three accepted events of each subscription", async () => {
      const entries = Object.values(await client.listSubscriptions()).flatMap((one) => Object.values(one));
      return entries.filter(({ topicName }) => topicName === topic).every((one) => one.notifiedEventCount === "3");
    });
    expect(receiver.lines()).toEqual(sent);
  });

  it("the receiver handles each event of a batch", async () => {
    const secret = createSecret();
    const { client, broker } = running();
    const receiver = start(command, secret);
    const batchTopic = `${topic}/batch`;
    await client.open(batchTopic);
    const sent: string[] = [];
    for (const content of ["one", "two", "x".repeat(60_000)]) {
      const { eventId } = await client.publish(batchTopic, content);
      sent.push(`${eventId} ${batchTopic} ${content}`);
    }
    const order = { topic: batchTopic, secret, url: await receiver.url(), offset: "OFFSET_FIRST", batch: "10" };
    await fetch(`${broker.url}/rest/subscribe`, { method: "POST", body: new URLSearchParams(order) });
    await until("the events are handled", () => receiver.lines().length === sent.length);
    expect(receiver.lines()).toEqual(sent);
  });

  it("the receiver accepts an event whose content is not text, so that later events come", async () => {
    const secret = createSecret();
    const { client, broker } = running();
    const receiver = start(command, secret);
    await client.open(`${topic}/bytes`);
    await client.subscribe({ topic: `${topic}/bytes`, secret, url: await receiver.url() });
    const { eventId } = await new Stele({ url: broker.url }).publish(`${topic}/bytes`, new Uint8Array([0xff]));
    await until("the event is handled", () => receiver.lines().some((line) => line.startsWith(eventId)));
  });

  it("the receiver does not start without a secret", async () => {
    expect(await start(command, "").ended).not.toBe(0);
  });

  it("the receiver refuses a callback that another secret signed", async () => {
    const { client } = running();
    const receiver = start(command, createSecret());
    const url = await receiver.url();
    await client.open(`${topic}/wrong`);
    const id = await client.subscribe({ topic: `${topic}/wrong`, secret: createSecret(), url });
    await client.publish(`${topic}/wrong`, "x");
    const attempts = async (): Promise<readonly { reason?: string }[]> => {
      const answer = await client.http.send({ method: "GET", path: `/admin/v1/subscriptions/${id}` });
      return (answer.json() as { attempts: readonly { reason?: string }[] }).attempts; // A test of the gateway checks the shape.
    };
    await until("an attempt fails", async () => (await attempts()).length > 0);
    expect(JSON.stringify(await attempts())).toContain("401");
    expect(receiver.lines()).toEqual([]);
    await client.unSubscribe(id);
  });
});
