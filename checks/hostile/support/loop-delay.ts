import { request } from "undici";

/**
 * The longest delay of a broker's event loop since the previous call, in milliseconds. The broker measures it itself and resets it on each scrape,
 * so the load of this process does not count.
 */
export async function takeLoopDelayMs(url: string): Promise<number> {
  const { body } = await request(`${url}/metrics`);
  const match = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await body.text());
  if (match === null) throw new Error("the metrics do not report the delay of the event loop");
  return Number(match[1]) * 1000;
}
