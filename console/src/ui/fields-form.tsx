import { type FormEvent, Fragment, type ReactNode, useRef } from "react";

export interface FieldsFormProps {
  /** The query that the fields show. The form makes them anew for another one, as of the browser's Back. */
  readonly query: string;
  /** Label of the button. */
  readonly label: string;
  readonly role?: "search";
  readonly onSubmit: (form: FormData) => void;
  readonly children: ReactNode;
}

/** Fields that show the query of the address, and a button that replaces it. */
export function FieldsForm({ query, label, role, onSubmit, children }: FieldsFormProps): ReactNode {
  const button = useRef<HTMLButtonElement>(null);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    button.current?.focus(); // The field where somebody pressed Enter is about to be made anew, and would take the focus with it.
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
