import { type ReactNode, useMemo, useState } from "react";
import { CopyButton } from "../ui/copy-button.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { toHexDump } from "./hex.ts";
import { layOutJson } from "./json-tokens.ts";
import { type Content, readContent, toShown } from "./read-content.ts";

type Form = "JSON" | "Text" | "Hex";

/** Maximum number of tokens of a JSON text that is shown in colour. A longer text is shown plain, because each coloured token is a DOM element. */
const colouredTokensMax = 4000;

export function ContentView({ bytes }: { readonly bytes: Uint8Array }): ReactNode {
  const content = useMemo(() => readContent(bytes), [bytes]);
  const [chosen, choose] = useState<Form>();
  const forms = formsOf(content);
  const selected = chosen !== undefined && forms.includes(chosen) ? chosen : (forms[0] ?? "Hex");
  return (
    <Tabs label="Content as" names={forms} selected={selected} onSelect={choose}>
      <FormView form={selected} content={content} />
    </Tabs>
  );
}

/** The forms that can show the content, the most readable first. */
function formsOf({ text, isJson }: Content): readonly Form[] {
  return [...(isJson ? (["JSON"] as const) : []), ...(text === undefined ? [] : (["Text"] as const)), "Hex"];
}

function FormView({ form, content }: { readonly form: Form; readonly content: Content }): ReactNode {
  if (content.bytes.length === 0) return <p className="quiet-text">The content is empty.</p>;
  const { text = "" } = content;
  if (form === "Hex") return <pre tabIndex={0}>{toHexDump(content.bytes)}</pre>;
  return (
    <>
      <pre tabIndex={0}>{form === "JSON" ? <Json text={text} /> : toShown(text)}</pre>
      <CopyButton text={text} label="Copy content" />
    </>
  );
}

function Json({ text }: { readonly text: string }): ReactNode {
  const tokens = useMemo(() => layOutJson(text) ?? [], [text]);
  const layout = useMemo(() => tokens.map((token) => token.text).join(""), [tokens]);
  const shown = toShown(layout);
  if (tokens.length > colouredTokensMax || shown !== layout) return shown;
  return tokens.map((token, index) => (
    // oxlint-disable-next-line react/no-array-index-key -- The tokens of one text never move.
    <span key={index} className={`json-${token.kind}`}>
      {token.text}
    </span>
  ));
}
