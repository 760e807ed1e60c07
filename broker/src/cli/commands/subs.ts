import {
  isUnsafeToRepeat,
  type Order,
  type OrderResult,
  type OrderTarget,
  SteleError,
  type SubscriptionSearch,
} from "@stele/client";
import type { Command } from "commander";
import { describeError } from "../describe-error.ts";
import { type CliIo, CommandFailed, UsageError } from "../io.ts";
import type { Column } from "../output.ts";
import { parseDuration, parseNumber } from "../parse.ts";
import { define } from "./define.ts";

interface SearchFlags {
  readonly state?: string;
  readonly kind?: string;
  readonly topic?: string;
  readonly prefix?: string;
  readonly host?: string;
  readonly owner?: string;
  readonly node?: string;
  readonly lagMin?: number;
  readonly failingFor?: number;
}

interface OrderFlags extends SearchFlags {
  readonly all?: true;
  readonly dryRun?: true;
  readonly to?: string;
  readonly from?: string;
  readonly event?: string;
}

/** The fields of a subscription that the tables show. */
interface Subscription {
  readonly id: string;
  readonly topic: string;
  readonly state: string;
  readonly url: string;
  readonly lag: number;
  readonly notified: number;
  readonly failing?: { readonly since: string; readonly attempts: number } | undefined;
}

const columns: readonly Column<Subscription>[] = [
  { title: "SUBSCRIPTION", of: ({ id }) => id },
  { title: "TOPIC", of: ({ topic }) => topic },
  { title: "STATE", of: ({ state, failing }) => (failing === undefined ? state : `${state}, failing`) },
  { title: "LAG", of: ({ lag }) => lag },
  { title: "DELIVERED", of: ({ notified }) => notified },
  { title: "URL", of: ({ url }) => url },
];

const failingField: Column<Subscription> = {
  title: "FAILING",
  of: ({ failing }) => (failing === undefined ? undefined : `since ${failing.since}, ${failing.attempts} attempts`),
};

/** The orders of these commands. The admin API also has `change` and `test`. */
type OrderName = Exclude<Order["name"], "change" | "test">;

const orders: Readonly<Record<OrderName, string>> = {
  pause: "Stops the delivery of subscriptions until you resume them.",
  resume: "Delivers again from the cursor of a subscription.",
  retry: "Makes the next attempt at once; also resumes a suspended subscription.",
  skip: "Skips the next event of a subscription, or all events up to the one that --to names.",
  replay: "Delivers again from an event on.",
  redeliver: "Delivers dead letters again, and removes those that are accepted.",
  discard: "Removes dead letters: their events are not delivered any more.",
};

export function defineSubs(program: Command, io: CliIo): void {
  const subs = program.command("subs").description("Shows and controls callback subscriptions, by the admin API.");
  define<SearchFlags>(subs, io, {
    usage: "list",
    summary: "Lists callback subscriptions with their lag.",
    examples: ["stele subs list", "stele subs list --host hooks.example.org --lag-min 100 -o ndjson"],
    flags: addSearchFlags,
    run: async ({ stele, output, signal }, { flags }) =>
      void (await output.rows(stele.admin.subscriptions(toSearch(flags), { signal }), columns)),
  });
  define(subs, io, {
    usage: "show <id>",
    summary: "Shows a subscription; in JSON also its last attempts.",
    examples: ["stele subs show 0b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11 -o json"],
    run: async ({ stele, output, signal }, { words: [id = ""] }) =>
      output.record(await stele.admin.subscription(id, { signal }), [...columns, failingField]),
  });
  define(subs, io, {
    usage: "dead-letters <id>",
    summary: "Lists the events that the broker skipped because all attempts failed; not those that an order skipped.",
    examples: ["stele subs dead-letters 0b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11"],
    run: async ({ stele, output, signal }, { words: [id = ""] }) =>
      void (await output.rows(stele.admin.deadLetters(id, { signal }), [
        { title: "EVENT", of: ({ eventId }) => eventId },
        { title: "TOPIC", of: ({ topic }) => topic },
        { title: "ATTEMPTS", of: ({ attempts }) => attempts },
        { title: "REASON", of: ({ reason }) => reason },
      ])),
  });
  for (const [name, summary] of Object.entries(orders)) defineOrder(subs, io, { name: name as OrderName, summary });
}

function defineOrder(
  subs: Command,
  io: CliIo,
  { name, summary }: { readonly name: OrderName; readonly summary: string },
): void {
  define<OrderFlags>(subs, io, {
    usage: `${name} [ids...]`,
    summary,
    examples: [
      `stele subs ${name} 0b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11${placeExample(name)}`,
      `stele subs ${name} --host down.example --dry-run${placeExample(name)}`,
    ],
    changes: ({ dryRun }) => dryRun !== true,
    flags: (command) => {
      if (name === "skip") command.option("--to <place>", "skip up to this event: an eventId, a sequence or a time");
      if (name === "redeliver" || name === "discard")
        command.option("--event <eventId>", "only the dead letter of this event");
      if (name === "replay") command.requiredOption("--from <place>", "OFFSET_FIRST, an eventId, a sequence or a time");
      return addSearchFlags(command)
        .option("--all", "all subscriptions of the group that --group or the context names; without one, of all groups")
        .option("--dry-run", "change nothing, and print how many events the order would affect");
    },
    run: async ({ stele, output, signal }, { words, flags }) => {
      const { dryRun, to, from, event: eventId } = flags;
      const order = { name, dryRun, to: toPlace(to), from: toPlace(from), eventId };
      let [refused, unknown, undelivered] = [0, 0, 0];
      /** The subscriptions of the running order, until its answer is complete. */
      let whom: string | undefined;
      const results = async function* () {
        for (const target of toTargets(words, flags)) {
          signal.throwIfAborted();
          whom = typeof target === "string" ? target : "some subscriptions";
          for await (const result of stele.admin.order(order, target, { signal })) {
            if (isDoubtful(result)) unknown += 1;
            else if (result.error !== undefined) refused += 1;
            else if (name === "redeliver" && dryRun !== true) undelivered += countUndelivered(result, eventId);
            yield result;
          }
          whom = undefined;
        }
      };
      const rows = output.rows(results(), [
        { title: "SUBSCRIPTION", of: ({ id }) => id },
        { title: "EVENTS", of: ({ events }) => events },
        { title: "LEFT", of: ({ letters }) => letters?.left },
        { title: "FAILURE", of: describeFailure },
      ]);
      const count = await rows.catch((error: unknown) => {
        const failure = dryRun ? undefined : findDoubt(error, signal);
        throw failure === undefined || whom === undefined
          ? error
          : new CommandFailed(`${failure}; ${adviceFor(order, whom)}`, { cause: error });
      });
      if (count === 0) output.note("no subscription matches");
      const parts = [
        ...(refused > 0 ? [`${inWords(refused)} refused the order`] : []),
        ...(undelivered > 0 ? [`${describeUndelivered(undelivered, eventId)}: give the order again`] : []),
        ...(unknown > 0 ? [adviceFor(order, inWords(unknown))] : []),
      ];
      if (parts.length > 0) throw new CommandFailed(parts.join("; "));
    },
  });
}

/** Whether an order may have changed a subscription for which it failed. */
function isDoubtful({ error, wasRefused }: OrderResult): boolean {
  return error !== undefined && wasRefused !== true;
}

/** Counts the dead letters that a redelivery left: one may have failed, the time may have run out, or another node may be delivering one. */
function countUndelivered({ events, letters }: OrderResult, eventId: string | undefined): number {
  if (eventId === undefined) return letters?.left ?? 0;
  // `left` also counts dead letters of other events. If it is 0, this event has none any more: a replay, a reorg or another order removed it.
  if (letters === undefined || letters.left === 0) return 0;
  // If two topics have the eventId, one dead letter may fail although the other was delivered.
  return events === 0 || letters.failure !== undefined ? 1 : 0;
}

function describeUndelivered(count: number, eventId: string | undefined): string {
  if (count === 1) return eventId === undefined ? "1 dead letter is left" : "the dead letter was not delivered";
  return `${count} dead letters ${eventId === undefined ? "are left" : "were not delivered"}`;
}

function describeFailure(result: OrderResult): string | undefined {
  const { error, letters } = result;
  return error === undefined ? letters?.failure?.reason : `${isDoubtful(result) ? "unknown: " : ""}${error.detail}`;
}

function inWords(subscriptions: number): string {
  return subscriptions === 1 ? "1 subscription" : `${subscriptions} subscriptions`;
}

/** Why nobody knows whether an order has taken effect: its answer was lost, or Ctrl-C ended the command. Undefined if that is known. */
function findDoubt(error: unknown, { aborted, reason }: AbortSignal): string | undefined {
  if (aborted && error === reason) return "the command was ended before the answer";
  return error instanceof SteleError && !error.wasRefused ? describeError(error) : undefined;
}

/** Says what to do about an order that may have taken effect. */
function adviceFor(order: Order, whom: string): string {
  return `the order may have taken effect for ${whom}${isUnsafeToRepeat(order) ? ": check the cursor before you repeat it" : ""}`;
}

function placeExample(name: OrderName): string {
  return name === "replay" ? " --from OFFSET_FIRST" : "";
}

function addSearchFlags(command: Command): Command {
  return command
    .option("--state <state>", "active, suspended, paused, locked or damaged")
    .option("--kind <kind>", "RESTful or JsonRPC")
    .option("--topic <topic>", "topic or pattern, as it was subscribed to")
    .option("--prefix <prefix>", "beginning of the topic")
    .option("--host <host>", "host of the url, with its port")
    .option("--owner <owner>", "principal that subscribed")
    .option("--node <address>", "node that delivers it")
    .option("--lag-min <events>", "at least this many events wait", parseNumber)
    .option("--failing-for <time>", "the receiver has failed for at least this long: 90s, 10m, 12h, 2d", parseDuration);
}

/** The search without its group. The client adds the group, to `--all` too. */
function toSearch({ failingFor, ...flags }: SearchFlags): SubscriptionSearch {
  const { state, kind, topic, prefix, host, owner, node, lagMin } = flags;
  return { state, kind, topic, prefix, host, owner, node, lagMin, failingMsMin: failingFor };
}

/** Subscriptions by identifier or by a search. Without either, `--all` must confirm that all are meant. */
function toTargets(ids: readonly string[], flags: OrderFlags): readonly OrderTarget[] {
  const search = toSearch(flags);
  const isSearch = Object.values(search).some((value) => value !== undefined);
  if (ids.length > 0 && (isSearch || flags.all))
    throw new UsageError("identifiers cannot be combined with a search or --all");
  if (ids.length > 0) return ids;
  if (isSearch) return [search];
  if (flags.all) return [{ all: true }];
  throw new UsageError("give identifiers, a search such as --host, or --all");
}

/** A text of digits becomes a number, which the API reads as a sequence. */
function toPlace(text: string | undefined): string | number | undefined {
  return text !== undefined && /^\d{1,11}$/.test(text) ? Number(text) : text;
}
