import { useQueryClient } from "@tanstack/react-query";
import type { Readiness } from "@stele/client";
import { type ReactNode, useState } from "react";
import { brokerUrl, formatKey } from "../broker/addresses.ts";
import { useSessionState } from "../broker/session-context.tsx";
import { CopyButton } from "../ui/copy-button.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { type CommandName, commandNames, type Draft, toCommands } from "./commands.ts";

/** The draft as a command of each client. */
export function DraftCommands({ draft }: { readonly draft: Draft }): ReactNode {
  const { hasKey } = useSessionState();
  const [selected, select] = useState<CommandName>("curl");
  const readiness = useQueryClient().getQueryData<Readiness>(["readiness"]);
  const commands = toCommands(draft, { url: brokerUrl, hasKey, formatKey, mqtt: findMqtt(readiness) });
  return (
    <section aria-label="The same as a command">
      <h3>The same as a command</h3>
      <Tabs label="Client" names={commandNames} selected={selected} onSelect={select}>
        <pre tabIndex={0}>{commands[selected]}</pre>
        <CopyButton text={commands[selected]} label={`Copy as ${selected}`} />
      </Tabs>
    </section>
  );
}

function findMqtt(readiness: Readiness | undefined): string | undefined {
  const listeners = readiness?.listeners; // With access control, only for operators.
  const mqtt = listeners?.find(({ name }) => name === "MQTT")?.address.replace(/^\w+:\/\//, "");
  return mqtt ?? (listeners && "off");
}
