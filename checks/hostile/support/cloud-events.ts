import type { HttpRequest } from "../../harness/http-client.ts";

export const cloudEventForms = ["structured", "binary", "batch"] as const;
export type CloudEventForm = (typeof cloudEventForms)[number];

/** A request that publishes one CloudEvent for each subject. The subject is the event's topic. Only the form `batch` allows several. */
export function publishCloudEvents(
  form: CloudEventForm,
  subjects: readonly [string, ...string[]],
  data = "x",
): HttpRequest {
  const events = subjects.map((subject) => ({
    specversion: "1.0",
    type: "test",
    source: "urn:test",
    id: "1",
    subject,
    datacontenttype: "text/plain",
    data,
  }));
  const publish = { method: "POST", path: "/rest/publish" } as const;
  const [{ data: body, datacontenttype, ...attributes } = events[0] as never] = events;
  if (form === "binary") {
    const headers = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, encodeURIComponent(value)]);
    return { ...publish, headers: { ...Object.fromEntries(headers), "content-type": datacontenttype }, body };
  }
  const type = form === "batch" ? "application/cloudevents-batch+json" : "application/cloudevents+json";
  return {
    ...publish,
    headers: { "content-type": type },
    body: JSON.stringify(form === "batch" ? events : events[0]),
  };
}
