import type { ReactNode } from "react";
import { FieldsForm } from "../ui/fields-form.tsx";
import type { TailQuery } from "./live-tail.ts";

export interface TailFormProps {
  readonly query: TailQuery;
  /** The query of the page's address. */
  readonly text: string;
  readonly onSubmit: (query: TailQuery) => void;
}

export function TailForm({ query, text, onSubmit }: TailFormProps): ReactNode {
  const submit = (form: FormData): void => {
    const [after, filter, groupId] = [textOf(form, "after"), textOf(form, "filter"), textOf(form, "group")];
    onSubmit({ topic: textOf(form, "topic") ?? "#", after, filter, groupId });
  };
  const isElsewhere = query.after !== undefined && query.after !== "OFFSET_FIRST";
  return (
    <FieldsForm query={text} label="Tail" onSubmit={submit}>
      <label>
        Topic or pattern
        <input name="topic" defaultValue={query.topic} required spellCheck={false} autoCapitalize="off" />
      </label>
      <label>
        Content filter
        <input name="filter" defaultValue={query.filter} placeholder='$.status == "paid"' spellCheck={false} />
      </label>
      <label>
        Start
        <select name="after" defaultValue={query.after ?? ""}>
          <option value="">with new events</option>
          <option value="OFFSET_FIRST">with the first event</option>
          {isElsewhere ? <option value={query.after}>after {query.after}</option> : null}
        </select>
      </label>
      {query.groupId === undefined ? null : (
        <label>
          Group
          <input name="group" defaultValue={query.groupId} spellCheck={false} autoCapitalize="off" />
        </label>
      )}
    </FieldsForm>
  );
}

function textOf(form: FormData, name: string): string | undefined {
  const value = form.get(name);
  return typeof value === "string" && value !== "" ? value : undefined;
}
