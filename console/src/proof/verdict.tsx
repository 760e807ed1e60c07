import type { ProofResult, ProvenEvent } from "@stele/client/proof";
import type { ReactNode } from "react";
import { formatCount } from "../lib/format.ts";
import { Facts } from "../ui/facts.tsx";
import { Time } from "../ui/time.tsx";
import type { Trusted } from "./verify.ts";

/** The result of a verification, with the hash and the registry that it relies on. */
export interface Verified extends Trusted {
  /** The node that gave the hash; undefined if the reader pasted it. */
  readonly node: string | undefined;
  readonly result: ProofResult;
}

export function Verdict(verified: Verified): ReactNode {
  const { result } = verified;
  if (result.status === "verified") return <Proven {...verified} event={result.event} />;
  return (
    <div role="status" className="verdict">
      <p className="health health-bad">Refuted</p>
      <p>{result.reason}.</p>
      <Facts facts={toGrounds(verified)} />
      <p className="quiet-text">
        Either the hash is of another block, or somebody changed the event, the proof or the chain. Nothing is proven.
      </p>
    </div>
  );
}

/** The hash and the registry that the verdict relies on. */
function toGrounds({ blockHash, registry, node }: Verified): Readonly<Record<string, ReactNode>> {
  return {
    [node === undefined ? "Hash that you gave" : `Hash from ${node}`]: <span className="mono">{blockHash}</span>,
    "Registry that you trust": registry === undefined ? "any" : <span className="mono">{registry}</span>,
  };
}

function Proven(verified: Verified & { readonly event: ProvenEvent }): ReactNode {
  const { event, node, registry } = verified;
  return (
    <div role="status" className="verdict">
      <p className="health health-good">Verified in this browser</p>
      <Facts
        facts={{
          ...toGrounds(verified),
          Event: <span className="mono">{event.eventId}</span>,
          Topic: event.topic,
          "Number in its topic": formatCount(event.sequence),
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
        {registry === undefined ? (
          <li>That the registry is the right one: you named none. Anybody can make another.</li>
        ) : null}
        <li>
          That no event is missing: <code>stele verify --topic</code> checks that against a node of the chain.
        </li>
      </ul>
    </div>
  );
}
