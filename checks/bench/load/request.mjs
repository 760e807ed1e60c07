/** Length of each event's content. */
export const eventBytes = 256;

/** Content of one event: `eventBytes` characters that differ from one index to the next. */
export function contentOf(index) {
  return `event number ${index} `.padEnd(eventBytes, "0123456789abcdef");
}

/** The bytes of a publish over REST with a JSON body. @param {{ readonly port: number, readonly topic: string, readonly credential?: string }} target */
export function restPublish({ port, topic, credential }, index) {
  return post({ port, path: "/rest/publish", credential }, { topic, content: contentOf(index) });
}

/** The bytes of many publishes in one JSON-RPC batch. */
export function jsonRpcPublishes({ port, topic }, index, count) {
  const content = contentOf(index);
  const events = Array.from({ length: count }, () => ({ topic, content }));
  return publishes(port, events);
}

/** The bytes of `batches` JSON-RPC batches of `count` events, all with different contents. The topics take turns. */
export function jsonRpcPublishesOver({ port, topics }, batches, count) {
  return Array.from({ length: batches }, (_, batch) => {
    const numbers = Array.from({ length: count }, (__, event) => batch * count + event);
    const events = numbers.map((number) => ({ topic: topics[number % topics.length], content: contentOf(number) }));
    return publishes(port, events);
  });
}

function publishes(port, events) {
  const calls = events.map(({ topic, content }, id) => ({
    jsonrpc: "2.0",
    id: String(id),
    method: "publish",
    params: { topic, groupId: "1", content: Buffer.from(content).toString("base64") },
  }));
  return post({ port, path: "/jsonrpc" }, calls);
}

function post({ port, path, credential }, body) {
  const text = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    "Content-Type: application/json",
    ...(credential === undefined ? [] : [`Authorization: Bearer ${credential}`]),
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${text}`);
}
