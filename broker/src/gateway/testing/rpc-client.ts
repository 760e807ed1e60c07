import { expect } from "vitest";

const json = { "content-type": "application/json" };

/** Posts a body, as JSON unless it is text already. */
export async function post(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = json,
): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(`${url}/jsonrpc`, { method: "POST", headers, body: text });
}

/** Posts a body, checks status and content type, and returns the parsed answer. */
export async function answer(url: string, body: unknown): Promise<unknown> {
  const response = await post(url, body);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  return response.json();
}
