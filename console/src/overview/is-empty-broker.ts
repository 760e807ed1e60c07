import type { Stele } from "@stele/client";

/** Topics that are searched for events. A broker with more topics counts as not empty. */
const topicsCountedMax = 10;

/** Whether the default group has few topics and no event. */
export async function isEmptyBroker(stele: Stele, signal: AbortSignal): Promise<boolean> {
  const { total, topicInfoList } = await stele.list({ pageSize: topicsCountedMax, signal });
  if (total > topicsCountedMax) return false;
  const states = await Promise.all(topicInfoList.map(({ topicName }) => stele.state(topicName, { signal })));
  return states.every(({ sequenceNumber }) => sequenceNumber === 0);
}
