import type { OrderTarget, Place } from "@stele/client";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";
import { useStele } from "../broker/session-context.tsx";
import { formatCounted, formatTime } from "../lib/format.ts";
import { Failure } from "../ui/failure.tsx";
import type { PlaceOrder } from "./orders.ts";
import { countParts, findSpan, parsePlace, stepsMax, type TimeSpan, toPlace } from "./time-span.ts";

export interface TimeLineProps {
  readonly name: PlaceOrder;
  readonly target: OrderTarget;
  /** Called with undefined for a skip of the next event alone. */
  readonly onChoose: (place: Place | undefined) => void;
}

/** Chooses where a skip ends or a replay begins, on a time line or by an exact place. */
export function TimeLine(props: TimeLineProps): ReactNode {
  const stele = useStele();
  const { data: span, error } = useQuery({
    queryKey: ["span", props.target],
    queryFn: ({ signal }) => findSpan(stele, props.target, signal),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  return (
    <>
      <Failure error={error} />
      {span === undefined ? null : <Line {...props} span={span} />}
    </>
  );
}

const labels: Readonly<Record<PlaceOrder, string>> = { skip: "Skip all up to", replay: "Deliver again from" };

function Line({ name, target, span, onChoose }: TimeLineProps & { readonly span: TimeSpan }): ReactNode {
  const [step, setStep] = useState(0);
  const [exact, setExact] = useState("");
  const id = useId();
  const placeAt = (at: number): Place | undefined => (isNextAlone(name, at) ? undefined : toPlace(span, at));
  const choose = (chosen: number): void => {
    setStep(chosen);
    setExact("");
    onChoose(placeAt(chosen));
  };
  const nameExactly = (text: string): void => {
    setExact(text);
    onChoose(text.trim() === "" ? placeAt(step) : parsePlace(text));
  };
  const where = isNextAlone(name, step) ? "the next event alone" : describeStep(span, step);
  return (
    <div className="time-line">
      <p>
        <label htmlFor={id}>{labels[name]}</label> <strong>{exact.trim() === "" ? where : exact}</strong>
      </p>
      <EventBars name={name} target={target} span={span} />
      <input
        id={id}
        type="range"
        min={0}
        max={stepsMax}
        value={step}
        aria-valuetext={where}
        onChange={({ target: { value } }) => choose(Number(value))}
      />
      <div className="ends quiet-text" aria-hidden="true">
        <span>{name === "skip" ? "next event" : "first event"}</span>
        <span>now</span>
      </div>
      <label>
        Or exactly: an eventId, a sequence or a time
        <input
          value={exact}
          onChange={({ target: { value } }) => nameExactly(value)}
          placeholder={new Date(span.from).toISOString()}
          spellCheck={false}
          autoComplete="off"
          className="mono"
        />
      </label>
    </div>
  );
}

/** A skip cannot end at the first event, which the cursor may have passed. For a skip, the start of the line means the next event. */
function isNextAlone(name: PlaceOrder, step: number): boolean {
  return name === "skip" && step === 0;
}

function describeStep(span: TimeSpan, step: number): string {
  const place = toPlace(span, step);
  if (place === "OFFSET_FIRST") return "the first event";
  return place === "OFFSET_LAST" ? "the last event" : formatTime(String(place));
}

const barHeight = 36;

/** How many events are in each part of the line. Shown only for one subscription: for many, each count would be a search. */
function EventBars({ name, target, span }: Pick<TimeLineProps, "name" | "target"> & { readonly span: TimeSpan }) {
  const stele = useStele();
  const { data } = useQuery({
    queryKey: ["parts", name, target, span],
    queryFn: ({ signal }) => countParts(stele, { name, target, span }, signal),
    enabled: typeof target === "string",
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (typeof target !== "string") return null;
  const most = Math.max(...(data ?? []), 1);
  return (
    <svg
      viewBox={`0 0 ${(data ?? []).length || 1} ${barHeight}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={data === undefined ? "Counting the events" : `At most ${formatCounted(most, "event")} in one part`}
    >
      {data?.map((count, part) => {
        const height = (count / most) * barHeight;
        return (
          // oxlint-disable-next-line react/no-array-index-key -- The parts of one line never move.
          <rect key={part} x={part + 0.1} width={0.8} y={barHeight - height} height={height} />
        );
      })}
    </svg>
  );
}
