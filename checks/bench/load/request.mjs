/** Content of each event. */
export const eventBytes = 256;

/** Content of one event: `eventBytes` characters that differ from connection to connection. */
export function contentOf(index) {
  return `event of connection ${index} `.padEnd(eventBytes, "0123456789abcdef");
}

/** The bytes of a publish by REST with a JSON body. @param {{ readonly port: number, readonly topic: string }} target */
export function restPublish({ port, topic }, index) {
  return post({ port, path: "/rest/publish" }, { topic, content: contentOf(index) });
}

/** The bytes of many publishes in one JSON-RPC batch. */
export function jsonRpcPublishes({ port, topic }, index, count) {
  return publishes(
    port,
    index,
    Array.from({ length: count }, () => topic),
  );
}

/** Batches as few as name each topic as often as any other, or nearly so. @param {readonly string[]} topics @returns {readonly Buffer[]} */
export function jsonRpcPublishesOver({ port, topics }, index, count) {
  const length = Math.ceil(topics.length / count);
  return Array.from({ length }, (_, request) =>
    publishes(
      port,
      index,
      Array.from({ length: count }, (__, event) => topics[(request * count + event) % topics.length]),
    ),
  );
}

function publishes(port, index, topics) {
  const content = Buffer.from(contentOf(index)).toString("base64");
  const calls = topics.map((topic, id) => ({
    jsonrpc: "2.0",
    id: String(id),
    method: "publish",
    params: { topic, groupId: "1", content },
  }));
  return post({ port, path: "/jsonrpc" }, calls);
}

function post({ port, path }, body) {
  const text = JSON.stringify(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(text)}`,
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${text}`);
}
