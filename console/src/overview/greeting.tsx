import type { ReceivedEvent } from "@stele/client";
import { type ReactNode, useEffect, useMemo } from "react";
import { Link } from "wouter";
import { brokerUrl, formatKey } from "../broker/addresses.ts";
import { useSessionState } from "../broker/session-context.tsx";
import { previewOf } from "../inspector/read-content.ts";
import { useLiveTail } from "../tail/use-live-tail.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Failure } from "../ui/failure.tsx";
import { toCommands, toOpenCommand, toTailCommand } from "./commands.ts";

const topic = "hello/world";
const everything = { topic: "#", after: "OFFSET_FIRST", filter: undefined, groupId: undefined };

/** First steps for an empty broker: commands to publish and to tail. Once the first event arrives, it replaces them. */
export function Greeting(): ReactNode {
  const tail = useLiveTail(everything);
  const { events, status } = tail;
  const first = events.at(0)?.event;
  useEffect(() => {
    if (first !== undefined) tail.stop(); // It would collect all events that follow.
  }, [tail, first]);
  return (
    <section className="card greeting" aria-label="First steps">
      <h2>{first === undefined ? "Nothing was published yet" : "The first event has arrived"}</h2>
      {first === undefined ? <Steps /> : null}
      {first === undefined && status.name === "failed" ? (
        <Failure error={status.error} />
      ) : (
        <p role="status" className={first === undefined ? "state state-connecting" : "state state-live"}>
          {first === undefined ? "Waiting for the first event …" : <First event={first} />}
        </p>
      )}
      {first === undefined ? null : (
        <p>
          It is on the chain, and stays there. <Link href="/tail?topic=%23&after=OFFSET_FIRST">Tail all events</Link>
        </p>
      )}
    </section>
  );
}

function First({ event: { topic: name, content, eventId } }: { readonly event: ReceivedEvent }): ReactNode {
  return (
    <>
      {name} · <q>{previewOf(content)}</q> · <Link href={`/events/${eventId}`}>{eventId}</Link>
    </>
  );
}

function Steps(): ReactNode {
  const { hasKey } = useSessionState();
  const steps = useMemo(() => {
    const options = { url: brokerUrl, hasKey, formatKey, mqtt: undefined };
    return [
      ["Open a topic", toOpenCommand(topic, options)],
      ["Publish an event", toCommands({ topic, content: "Hello, chain!", isJson: false }, options).curl],
      ["Watch events arrive", toTailCommand("#", options)],
    ] as const;
  }, [hasKey]);
  return (
    <>
      <p>Three commands publish an event and show it. The form below does the first two as well.</p>
      <ol className="steps">
        {steps.map(([name, command]) => (
          <li key={name}>
            <div className="title">
              <h3>{name}</h3>
              <CopyButton text={command} of={`the command: ${name.toLowerCase()}`} />
            </div>
            <pre tabIndex={0}>{command}</pre>
          </li>
        ))}
      </ol>
    </>
  );
}
