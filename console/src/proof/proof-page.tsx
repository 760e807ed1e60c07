import type { Proof, ProofResult, ProvenEvent } from "@stele/client/proof";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link } from "wouter";
import { describeError } from "../broker/describe-error.ts";
import { useStele } from "../broker/session-context.tsx";
import { parseEventId } from "../lib/event-id.ts";
import { formatCount } from "../lib/format.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Facts } from "../ui/facts.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { Time } from "../ui/time.tsx";
import { ProofPath } from "./proof-path.tsx";
import { chainNodes } from "../broker/addresses.ts";
import { readBlockHash, verify } from "./verify.ts";

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
  /** The node that gave the hash; undefined where the reader pasted it. */
  readonly node?: string | undefined;
  readonly result: ProofResult | undefined;
  readonly problem: string | undefined;
}

interface VerificationProps {
  readonly proof: Proof;
  readonly eventId: string;
}

function Verification({ proof, eventId }: VerificationProps): ReactNode {
  const [{ result, problem, node }, setOutcome] = useState<Outcome>({ result: undefined, problem: undefined });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setOutcome(tryVerify(proof, { blockHash: textOf(form, "hash"), registry: textOf(form, "registry") || undefined }));
  };
  const block = parseEventId(eventId)?.block ?? 0;
  const askNode = async (url: string, registry: string | undefined): Promise<void> => {
    try {
      const blockHash = await readBlockHash(url, block);
      setOutcome({ ...tryVerify(proof, { blockHash, registry }), node: new URL(url).host });
    } catch (error) {
      setOutcome({ result: undefined, problem: `${new URL(url).host}: ${describeError(error)}` });
    }
  };
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
          <NodeButtons onAsk={(form, url) => void askNode(url, textOf(form, "registry") || undefined)} />
        </form>
        {problem === undefined ? null : (
          <p role="alert" className="failure">
            {problem}
          </p>
        )}
        <Verdict result={result} node={node} />
      </section>
      <section className="card" aria-label="From the event to the block">
        <h2>From the event to the block</h2>
        <ProofPath proof={proof} result={result} />
      </section>
    </div>
  );
}

interface NodeButtonsProps {
  readonly onAsk: (form: FormData, url: string) => void;
}

/** Nodes that the operator lets the page ask. Whether to trust one is for the reader to say. */
function NodeButtons({ onAsk }: NodeButtonsProps): ReactNode {
  if (chainNodes.length === 0) return null;
  return (
    <div className="bar">
      <p className="quiet-text">Or take the hash from a node that you trust:</p>
      {chainNodes.map((url) => (
        <button
          key={url}
          type="button"
          className="quiet"
          onClick={({ currentTarget: { form } }) => onAsk(new FormData(form ?? undefined), url)}
        >
          Ask {new URL(url).host}
        </button>
      ))}
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

interface VerdictProps {
  readonly result: ProofResult | undefined;
  readonly node: string | undefined;
}

function Verdict({ result, node }: VerdictProps): ReactNode {
  if (result === undefined) return null;
  if (result.status === "verified") return <Proven event={result.event} node={node} />;
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

interface ProvenProps {
  readonly event: ProvenEvent;
  readonly node: string | undefined;
}

function Proven({ event, node }: ProvenProps): ReactNode {
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
        The block with the hash that {node === undefined ? "you gave" : `the node ${node} gave`} has this event, with
        this content and these extensions, at this place of its topic.
      </p>
      <h3>What it does not prove</h3>
      <ul>
        <li>
          That the block is on the chain that you mean: this rests on{" "}
          {node === undefined ? "where you got its hash" : `the node ${node}, which the operator of this broker named`}.
        </li>
        <li>That the registry is the right one, unless you named it. Anybody can make another.</li>
        <li>
          That no event is missing: <code>stele verify --topic</code> checks that against a node of the chain.
        </li>
      </ul>
    </div>
  );
}
