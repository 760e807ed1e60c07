// `node --expose-gc tools/fill-history.mjs SUBSCRIPTIONS`: records attempts of SUBSCRIPTIONS subscriptions in an attempt history. Prints as JSON the memory that
// the history uses, the time to record an attempt, and the history's own bound. For `npm run bench -- --only admin`.
import { AttemptHistory, historyBytesMax } from "../broker/dist/engine/deliver/attempt-history.js";

const subscriptions = Number(process.argv[2]);
/** Characters of the longest excerpt, each of two bytes in UTF-8. */
const answerCharacters = 512;
const encoder = new TextEncoder();
const nothing = new Uint8Array();

const idOf = (number) => `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
const endOf = (number, outcome, body) => ({
  outcome,
  answer: { status: 503, body },
  at: number / 7,
  durationMs: number / 3,
});

/** For each case, the attempts of a subscription and how they end. No two attempts share a text. */
const cases = {
  accepted: { attempts: 1, end: (number) => endOf(number, { status: "accepted" }, nothing) },
  failed: { attempts: 2, end: (number) => endOf(number, { status: "failed", reason: `${number} failed` }, nothing) },
  answered: {
    attempts: 1,
    end: (number) => {
      // Characters that take two bytes in memory.
      const body = encoder.encode(`${number} `.padEnd(answerCharacters, "\u0414"));
      return endOf(number, { status: "failed", reason: Buffer.from(`${number} `.padEnd(100, "r")).toString() }, body);
    },
  },
};

function usedBytes() {
  // The second collection frees objects that the first found to be unused.
  for (let times = 0; times < 2; times += 1) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Gives each subscription one attempt before any gets a second. So a full history has to forget an attempt for each new one. */
function fill({ attempts, end }) {
  const before = usedBytes();
  const history = new AttemptHistory();
  const startedAt = performance.now();
  for (let round = 0; round < attempts; round += 1) {
    for (let number = 0; number < subscriptions; number += 1) {
      const unique = number * attempts + round;
      const notification = { subscription: { id: idOf(number) }, eventId: `2cf24dba-${unique}-${unique}` };
      history.note(notification, end(unique));
    }
  }
  const microseconds = ((performance.now() - startedAt) * 1_000) / (attempts * subscriptions);
  const bytes = usedBytes() - before;
  if (history.of(idOf(subscriptions - 1)).length === 0) throw new Error("the newest attempt is forgotten");
  return { bytes, microseconds };
}

const filled = Object.fromEntries(Object.entries(cases).map(([name, one]) => [name, fill(one)]));
process.stdout.write(`${JSON.stringify({ statedBytes: historyBytesMax, filled })}\n`);
