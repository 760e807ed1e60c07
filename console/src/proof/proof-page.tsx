import type { CallOptions, Stele } from "@stele/client";
import type { Proof, ProofResult } from "@stele/client/proof";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { askAgain } from "../broker/ask-again.ts";
import { whileShown } from "../broker/while-shown.ts";
import { describeError, isServedElsewhere } from "../broker/describe-error.ts";
import { useStele } from "../broker/session-context.tsx";
import { parseEventId } from "../lib/event-id.ts";
import { formatCount } from "../lib/format.ts";
import { toAddress } from "../lib/to-address.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Failure } from "../ui/failure.tsx";
import { Page } from "../ui/page.tsx";
import { ProofPath } from "./proof-path.tsx";
import { chainNodes } from "../broker/addresses.ts";
import { Verdict, type Verified } from "./verdict.tsx";
import { readBlockHash, verify } from "./verify.ts";

/** The proof of one event, verified in this page against a block hash that the reader trusts. */
export function ProofPage({ eventId }: { readonly eventId: string }): ReactNode {
  const stele = useStele();
  const [search] = useSearchParams();
  const groupId = search.get("group") ?? undefined;
  const { data: proof, failureReason } = useQuery({
    ...askAgain,
    queryKey: ["proof", groupId, eventId],
    queryFn: ({ signal }) => getOwnProof(stele, eventId, { groupId, signal }),
    ...whileShown,
  });
  return (
    <Page
      title={`Proof of ${eventId}`}
      actions={<Link href={toAddress(`/events/${eventId}`, { group: groupId })}>Event</Link>}
    >
      <Failure error={failureReason} />
      {proof === undefined ? null : <Verification key={eventId} proof={proof} eventId={eventId} />}
    </Page>
  );
}

/** @throws Error for a proof of another event: it could be verified, but would say nothing about the event of this page. */
async function getOwnProof(stele: Stele, eventId: string, options: CallOptions): Promise<Proof> {
  const proof = await readProof(stele, eventId, options);
  if (proof.event.eventId === eventId) return proof;
  throw new Error(`the broker returned a proof of ${proof.event.eventId} instead`);
}

/** A port for operators serves only their own call, which returns the event and its proof. */
async function readProof(stele: Stele, eventId: string, options: CallOptions): Promise<Proof> {
  try {
    return await stele.getProof(eventId, options);
  } catch (error) {
    if (!isServedElsewhere(error)) throw error;
    const { proof } = await stele.admin.event(eventId, { ...options, proof: true });
    return proof as unknown as Proof; // The verification checks it.
  }
}

/** What the reader trusts, as entered in the form. */
interface Trust {
  readonly hash: string;
  readonly registry: string;
  /** The node that gave the hash; undefined if the reader pasted it. */
  readonly node: string | undefined;
}

const nothingTrusted: Trust = { hash: "", registry: "", node: undefined };

type Outcome = Omit<Verified, "result"> & { readonly result?: ProofResult; readonly problem?: string };

interface VerificationProps {
  readonly proof: Proof;
  readonly eventId: string;
}

function Verification({ proof, eventId }: VerificationProps): ReactNode {
  const block = parseEventId(eventId)?.block ?? 0;
  const { trust, outcome, edit, verifyNow, askNode } = useVerification(proof, block);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    verifyNow(trust);
  };
  const { result, problem } = outcome ?? {};
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
            <input
              value={trust.hash}
              onChange={({ target }) => edit({ ...trust, hash: target.value, node: undefined })}
              required
              spellCheck={false}
              autoComplete="off"
              placeholder="0x…"
              className="mono"
            />
          </label>
          <label>
            Registry that you trust (any, if empty)
            <input
              value={trust.registry}
              onChange={({ target }) => edit({ ...trust, registry: target.value })}
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
          <NodeButtons onAsk={(url) => void askNode(url)} />
        </form>
        {problem === undefined ? null : (
          <p role="alert" className="failure">
            {problem}
          </p>
        )}
        {outcome === undefined || result === undefined ? null : <Verdict {...outcome} result={result} />}
      </section>
      <section className="card" aria-label="From the event to the block">
        <h2>From the event to the block</h2>
        <ProofPath proof={proof} result={result} />
      </section>
    </div>
  );
}

/** The form and the outcome of a verification. An outcome is for one hash and one registry, so each edit drops it and aborts a pending request to a node. */
function useVerification(proof: Proof, block: number) {
  const [trust, setTrust] = useState(nothingTrusted);
  const [outcome, setOutcome] = useState<Outcome>();
  const asking = useRef<AbortController>(undefined);
  const edit = (next: Trust): void => {
    asking.current?.abort();
    setTrust(next);
    setOutcome(undefined);
  };
  const verifyNow = (next: Trust): void => {
    edit(next);
    setOutcome(tryVerify(proof, next));
  };
  const askNode = async (url: string): Promise<void> => {
    edit(trust);
    const { signal } = (asking.current = new AbortController());
    const node = new URL(url).host;
    try {
      const hash = await readBlockHash(url, block, { signal });
      if (!signal.aborted) verifyNow({ ...trust, hash, node });
    } catch (error) {
      if (!signal.aborted) setOutcome({ ...toTrusted(trust), problem: `${node}: ${describeError(error)}` });
    }
  };
  return { trust, outcome, edit, verifyNow, askNode };
}

interface NodeButtonsProps {
  readonly onAsk: (url: string) => void;
}

/** Nodes that the operator lets the page ask. The reader decides whether to trust them. */
function NodeButtons({ onAsk }: NodeButtonsProps): ReactNode {
  if (chainNodes.length === 0) return null;
  return (
    <div className="bar">
      <p className="quiet-text">Or take the hash from a node that you trust:</p>
      {chainNodes.map((url) => (
        <button key={url} type="button" className="quiet" onClick={() => onAsk(url)}>
          Ask {new URL(url).host}
        </button>
      ))}
    </div>
  );
}

function tryVerify(proof: Proof, trust: Trust): Outcome {
  const trusted = toTrusted(trust);
  try {
    return { ...trusted, result: verify(proof, trusted) };
  } catch (error) {
    return { ...trusted, problem: error instanceof Error ? error.message : String(error) };
  }
}

function toTrusted({ hash, registry, node }: Trust): Omit<Verified, "result"> {
  return { blockHash: hash.trim(), registry: registry.trim() || undefined, node };
}
