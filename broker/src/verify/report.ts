import type { Difference } from "./comparison.ts";
import { type OutputFormat, toJsonText } from "../lib/output-format.ts";
import { toEscapedJson, toPrintable } from "../lib/printable.ts";
import type { PinnedBy } from "./registry-pin.ts";
import type { EventReport } from "./verify-event.ts";
import type { TopicReport } from "./verify-topic.ts";

/** The format of a report, and the source that was trusted for the chain. */
interface Trust {
  readonly format: OutputFormat;
  /** Whether the user named a node. */
  readonly hasOwnNode: boolean;
}

/** Text for standard output; ends with a line break. */
export function renderEventReport(report: EventReport, trust: Trust): string {
  if (trust.format !== "table") return toEscapedJson(toJsonText(trust.format, toJson(report)));
  if (report.status === "refuted") return toText([`refuted at step ${report.step}: ${report.reason}`]);
  const { event, blockHash, blockHashFrom } = report;
  const rows = [
    ["topic", event.topic],
    ["content", `${event.content.length} bytes, ${event.extensions.length} extensions`],
    ["published", `by ${event.publisher}, transaction ${event.transactionIndex} of block ${event.blockNumber}`],
    ["block", `${blockHash}, from ${blockHashFrom ?? "you"}`],
    ["registry", pinned(event.registry, report.pinnedBy)],
  ];
  const head = `verified: event ${event.eventId} is on the chain`;
  return toText([head, ...toLines(rows), ...toNotes(trust, blockHashFrom)]);
}

export function renderTopicReport(report: TopicReport, trust: Trust): string {
  if (trust.format !== "table") return toEscapedJson(toJsonText(trust.format, report));
  const { topic, from, to } = report;
  const head =
    report.status === "verified"
      ? `verified: events ${from} to ${to} of ${topic} match the chain exactly`
      : `refuted: events ${from} to ${to} of ${topic} do not match the chain`;
  const rows = [
    ["chain", `${report.events} events in ${report.batches} batches, according to ${report.chain}`],
    ...report.differences.map((difference) => [difference.kind, describe(difference)]),
    ["in all", describeCounts(report.counts)],
    ...report.malformed.map(({ firstSequence, count, blockNumber, fault }) => [
      "malformed",
      `${count} sequences from ${firstSequence} on have no events (block ${blockNumber}: ${fault})`,
    ]),
    ["registry", pinned(report.registry, report.pinnedBy)],
  ];
  return toText([head, ...toLines(rows), ...toNotes(trust, report.chain)]);
}

function toText(lines: readonly string[]): string {
  return lines.map((line) => `${toPrintable(line)}\n`).join("");
}

function describeCounts(counts: TopicReport["counts"]): string {
  const { missing, different, extra, foreign } = counts;
  const others = foreign === 0 ? "" : `, ${foreign} of other publishers`;
  return `${missing} missing, ${different} different, ${extra} extra${others}`;
}

function pinned(registry: string, pinnedBy: PinnedBy): string {
  return pinnedBy === "first use" ? `${registry}, trusted on first use` : `${registry}, from ${pinnedBy}`;
}

function describe({ sequence, eventId, field, publisher }: Difference): string {
  const what = eventId === "" ? `sequence ${sequence} and all later ones` : `sequence ${sequence} (${eventId})`;
  if (publisher !== undefined) return `${what} and the others of its batch: published by ${publisher}`;
  return field === undefined ? what : `${what}: ${field}`;
}

function toLines(rows: readonly (readonly string[])[]): readonly string[] {
  return rows.map(([name = "", value = ""]) => `  ${name.padEnd(10)}${value}`);
}

function toNotes({ hasOwnNode }: Trust, from: string | undefined): readonly string[] {
  if (hasOwnNode || from === undefined) return [];
  return ["The broker's own view of the chain was trusted: pass --rpc to ask another node."];
}

/** The report with the content in Base64, like getEvent. */
function toJson(report: EventReport): object {
  if (report.status === "refuted") return report;
  return { ...report, event: { ...report.event, content: Buffer.from(report.event.content).toString("base64") } };
}
