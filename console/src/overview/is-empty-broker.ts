import type { Stele } from "@stele/client";

/** Topics whose events are counted: a broker with more is no new one. */
const topicsCountedMax = 10;

/** Whether nothing was ever published. */
export async function isEmptyBroker(stele: Stele, signal: AbortSignal): Promise<boolean> {
  const { total, topicInfoList } = await stele.list({ pageSize: topicsCountedMax, signal });
  if (total > topicsCountedMax) return false;
  const states = await Promise.all(topicInfoList.map(({ topicName }) => stele.state(topicName, { signal })));
  return states.every(({ sequenceNumber }) => sequenceNumber === 0);
}
