import type { Client } from "../../harness/client.ts";

/** Returns a function that sends orders for one subscription to the admin API, and returns the answers. It throws an Error if the broker refuses an order. */
export function orderOf(client: Client, id: string): (name: string, body?: object) => Promise<unknown> {
  return async (name, body = {}) => {
    const answer = await client.http.send({
      method: "POST",
      path: `/admin/v1/subscriptions/${id}/${name}`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(`${name}: ${answer.status} ${answer.text}`);
    return answer.json();
  };
}
