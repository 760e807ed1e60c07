import { BrokerError } from "@stele/wire";

/** Refuses texts with a NUL character, which PostgreSQL cannot store. @throws BrokerError 200001. */
export function checkText(texts: Readonly<Record<string, string | undefined>>): void {
  const name = Object.keys(texts).find((key) => texts[key]?.includes("\0") === true);
  if (name !== undefined) throw new BrokerError("parameterInvalid", { details: `"${name}" contains a NUL character` });
}
