import type { EventBody, SendResult, TopicInfo, TopicPageBody, TopicState } from "@stele/wire";
import type { Event } from "../../domain/event.ts";
import type { Topic } from "../../domain/topic.ts";
import type { EventResult, ListResult, PublishResult } from "../../engine/broker.ts";

/** The JSON text of a publish result. It has exactly the documented fields: clients refuse unknown ones. */
export function renderSendResult({ topic, eventId, status }: PublishResult & SendResult): string {
  // JSON.stringify takes three times as long. Identifiers and statuses hold nothing that JSON escapes.
  return `{"topic":${JSON.stringify(topic)},"eventId":"${eventId}","status":"${status}"}`;
}

/** An event that is not committed has an empty eventId. */
export function toEventBody(event: Event & { readonly eventId: EventResult["eventId"] | "" }): EventBody {
  const { buffer, byteOffset, byteLength } = event.content;
  return {
    topic: event.topic,
    content: Buffer.from(buffer, byteOffset, byteLength).toString("base64"),
    // Object.fromEntries defines own properties, so that a key `__proto__` is plain data.
    extensions: Object.fromEntries(event.extensions),
    eventId: event.eventId,
  };
}

export function toTopicPage(page: ListResult): TopicPageBody {
  return {
    total: page.total,
    pageIndex: page.pageIndex,
    pageSize: page.pageSize,
    topicInfoList: page.topics.map(toTopicInfo),
  };
}

export function toTopicState(topic: Topic): TopicState {
  return { ...toTopicInfo(topic), sequenceNumber: topic.sequence, blockNumber: topic.blockNumber };
}

function toTopicInfo(topic: Topic): TopicInfo {
  return {
    topicName: topic.name,
    topicAddress: topic.address,
    senderAddress: topic.sender,
    createdTimestamp: topic.createdTimestamp,
  };
}
