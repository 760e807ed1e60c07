const batchMax = 1000;

/** Names for `count` topics; a smaller count gives the first of them. @param {number} count */
export function topicsOf(count) {
  return Array.from({ length: count }, (_, index) => `bench/topic/${index}`);
}

/** Opens topics in JSON-RPC batches, one request after another; returns how many seconds that took. @param {number} port @param {readonly string[]} topics */
export async function openTopics(port, topics) {
  const startedAt = performance.now();
  for (let from = 0; from < topics.length; from += batchMax) await openBatch(port, topics.slice(from, from + batchMax));
  return (performance.now() - startedAt) / 1000;
}

async function openBatch(port, topics) {
  const calls = topics.map((topic, id) => ({
    jsonrpc: "2.0",
    id: String(id),
    method: "open",
    params: { topic, groupId: "1" },
  }));
  const response = await fetch(`http://127.0.0.1:${port}/jsonrpc`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(calls),
  });
  const failed = (await response.json()).find(({ result }) => result !== "true");
  if (failed !== undefined) throw new Error(`open failed: ${JSON.stringify(failed)}`);
}
