import { expect } from "vitest";

/** Publishes each line as an event, in order, in few requests. */
export async function publishLines(url: string, topic: string, lines: readonly string[]): Promise<void> {
  const batchMax = 500;
  for (let at = 0; at < lines.length; at += batchMax) {
    const calls = lines.slice(at, at + batchMax).map((line, id) => ({
      jsonrpc: "2.0",
      id,
      method: "publish",
      params: { topic, content: Buffer.from(line).toString("base64") },
    }));
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/jsonrpc`, { method: "POST", headers, body: JSON.stringify(calls) });
    expect(((await answer.json()) as readonly object[]).every((one) => "result" in one)).toBe(true);
  }
}
