// The baseline for publishing: one Fastify route that parses the same request, answers with a body of the same size, and stores nothing.
import { createHash } from "node:crypto";
import { fastify } from "fastify";

const app = fastify();
let sequence = 0;

app.post("/rest/publish", async (request, reply) => {
  const { topic, content } = request.body;
  if (typeof topic !== "string" || typeof content !== "string") return reply.status(400).send();
  sequence += 1;
  return { topic, eventId: `${prefixOf(topic)}-${sequence}-1124`, status: "SUCCESS" };
});

const prefixes = new Map();

function prefixOf(topic) {
  const known = prefixes.get(topic);
  if (known !== undefined) return known;
  const prefix = createHash("sha256").update(topic).digest("hex").slice(0, 8);
  prefixes.set(topic, prefix);
  return prefix;
}

process.once("SIGTERM", () => process.exit(0));
await app.listen({ host: "127.0.0.1", port: 0 });
process.stdout.write(`listening on ${app.server.address().port}\n`);
