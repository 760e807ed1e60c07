import type { ReactNode } from "react";

/** Names and values; an undefined value is left out. */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, ReactNode>> }): ReactNode {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  return (
    <dl className="facts">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
