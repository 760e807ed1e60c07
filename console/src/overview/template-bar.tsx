import type { ReactNode } from "react";
import { CopyButton } from "../ui/copy-button.tsx";
import type { Draft } from "./commands.ts";
import { templates, toFragment } from "./templates.ts";

export interface TemplateBarProps {
  readonly draft: Draft;
  readonly onPick: (draft: Draft) => void;
}

/** Fills the form from a template, and copies a link to the current draft, which serves as a further template. */
export function TemplateBar({ draft, onPick }: TemplateBarProps): ReactNode {
  const pick = (name: string): void => {
    const found = templates.find((one) => one.name === name);
    if (found !== undefined) onPick({ topic: found.topic, content: found.content, isJson: found.isJson });
  };
  return (
    <div className="bar templates">
      <label>
        Template
        <select defaultValue="" onChange={({ target }) => pick(target.value)}>
          <option value="">none</option>
          {templates.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <CopyButton text={() => new URL(toFragment(draft), document.baseURI).href} label="Copy link to this draft" />
    </div>
  );
}
