import type { Client } from "../../harness/client.ts";

/** Returns a function that sends an operator's order, such as `test`, for the subscription and returns the answer. It throws if the broker refuses the order. */
export function createOrderSender(client: Client, id: string): (name: string, body?: object) => Promise<unknown> {
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
