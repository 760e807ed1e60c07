import { type FormEvent, Fragment, type ReactNode, useRef } from "react";

export interface FieldsFormProps {
  /** The query that the fields show. When it changes, for example by the browser's Back, the form creates new fields. */
  readonly query: string;
  /** Label of the button. */
  readonly label: string;
  readonly role?: "search";
  readonly onSubmit: (form: FormData) => void;
  readonly children: ReactNode;
}

/** A form whose fields show the query of the page's address, and whose button replaces that query. */
export function FieldsForm({ query, label, role, onSubmit, children }: FieldsFormProps): ReactNode {
  const button = useRef<HTMLButtonElement>(null);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    button.current?.focus(); // The new query replaces the fields: the focus would be lost with the field in which somebody pressed Enter.
    onSubmit(new FormData(event.currentTarget));
  };
  return (
    <form className="fields" onSubmit={submit} role={role}>
      <Fragment key={query}>{children}</Fragment>
      <button type="submit" ref={button}>
        {label}
      </button>
    </form>
  );
}
