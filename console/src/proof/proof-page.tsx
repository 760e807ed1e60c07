import type { Proof, ProofResult, ProvenEvent } from "@stele/client/proof";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "wouter";
import { useStele } from "../broker/session-context.tsx";
import { parseEventId } from "../lib/event-id.ts";
import { formatCount } from "../lib/format.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Facts } from "../ui/facts.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { Time } from "../ui/time.tsx";
import { ProofPath } from "./proof-path.tsx";
import { verify } from "./verify.ts";

/** The proof of one event, verified in this page against a block hash that its reader trusts. */
export function ProofPage({ eventId }: { readonly eventId: string }): ReactNode {
  const stele = useStele();
  const { data: proof, error } = useQuery({
    queryKey: ["proof", eventId],
    queryFn: ({ signal }) => stele.getProof(eventId, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Page title={`Proof of ${eventId}`} actions={<Link href={`/events/${eventId}`}>Event</Link>}>
      <Failure error={error} />
      {proof === undefined ? null : <Verification key={eventId} proof={proof} eventId={eventId} />}
    </Page>
  );
}

interface Outcome {
  readonly result: ProofResult | undefined;
  readonly problem: string | undefined;
}

interface VerificationProps {
  readonly proof: Proof;
  readonly eventId: string;
}

function Verification({ proof, eventId }: VerificationProps): ReactNode {
  const [{ result, problem }, setOutcome] = useState<Outcome>({ result: undefined, problem: undefined });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setOutcome(tryVerify(proof, { blockHash: textOf(form, "hash"), registry: textOf(form, "registry") || undefined }));
  };
  const block = parseEventId(eventId)?.block ?? 0;
  return (
    <div className="columns">
      <section className="card" aria-label="Verification">
        <h2>Verify it here</h2>
        <p>
          Paste the hash of block {formatCount(block)} from somebody other than this broker: a partner, an explorer, a
          node of your own. A hash from the broker itself would prove nothing.
        </p>
        <form onSubmit={submit}>
          <label>
            Hash of block {block}
            <input name="hash" required spellCheck={false} autoComplete="off" placeholder="0x…" className="mono" />
          </label>
          <label>
            Registry that you trust (any, if empty)
            <input
              name="registry"
              spellCheck={false}
              autoComplete="off"
              placeholder={proof.registry}
              className="mono"
            />
          </label>
          <div className="bar">
            <button type="submit">Verify</button>
            <CopyButton text={JSON.stringify(proof)} label="Copy the proof" />
          </div>
        </form>
        {problem === undefined ? null : (
          <p role="alert" className="failure">
            {problem}
          </p>
        )}
        <Verdict result={result} />
      </section>
      <section className="card" aria-label="From the event to the block">
        <h2>From the event to the block</h2>
        <ProofPath proof={proof} result={result} />
      </section>
    </div>
  );
}

function tryVerify(proof: Proof, trusted: Parameters<typeof verify>[1]): Outcome {
  try {
    return { result: verify(proof, trusted), problem: undefined };
  } catch (error) {
    return { result: undefined, problem: error instanceof Error ? error.message : String(error) };
  }
}

function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value.trim() : "";
}

function Verdict({ result }: { readonly result: ProofResult | undefined }): ReactNode {
  if (result === undefined) return null;
  if (result.status === "verified") return <Proven event={result.event} />;
  return (
    <div role="status">
      <p className="health health-bad">Refuted</p>
      <p>{result.reason}.</p>
      <p className="quiet-text">
        Either the hash is of another block, or somebody changed the event, the proof or the chain. Nothing is proven.
      </p>
    </div>
  );
}

function Proven({ event }: { readonly event: ProvenEvent }): ReactNode {
  return (
    <div role="status" className="verdict">
      <p className="health health-good">Verified in this browser</p>
      <Facts
        facts={{
          Event: <span className="mono">{event.eventId}</span>,
          Topic: event.topic,
          "Number in it": formatCount(event.sequence),
          Block: formatCount(event.blockNumber),
          "Time of the block": <Time iso={new Date(event.blockTimestamp * 1000).toISOString()} />,
          Publisher: <span className="mono">{event.publisher}</span>,
          Registry: <span className="mono">{event.registry}</span>,
        }}
      />
      <h3>What this proves</h3>
      <p>
        The block with the hash that you gave has this event, with this content and these extensions, at this place of
        its topic.
      </p>
      <h3>What it does not prove</h3>
      <ul>
        <li>That the block is on the chain that you mean: this rests on where you got its hash.</li>
        <li>That the registry is the right one, unless you named it. Anybody can make another.</li>
        <li>
          That no event is missing: <code>stele verify --topic</code> checks that against a node of the chain.
        </li>
      </ul>
    </div>
  );
}
