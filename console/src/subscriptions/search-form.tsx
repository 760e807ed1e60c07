import type { ReactNode } from "react";
import { FieldsForm } from "../ui/fields-form.tsx";

export interface SearchFormProps {
  readonly search: URLSearchParams;
  readonly onSearch: (search: URLSearchParams) => void;
  /** Named fields; the search leaves out the empty ones. */
  readonly children: ReactNode;
}

export function SearchForm({ search, onSearch, children }: SearchFormProps): ReactNode {
  const submit = (form: FormData): void => {
    const entries = [...form].filter((entry): entry is [string, string] => {
      const [, value] = entry;
      return typeof value === "string" && value !== "";
    });
    onSearch(new URLSearchParams(entries));
  };
  return (
    <FieldsForm query={search.toString()} label="Search" role="search" onSubmit={submit}>
      {children}
    </FieldsForm>
  );
}

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly search: URLSearchParams;
}

export function TextField({ label, name, search }: FieldProps): ReactNode {
  return (
    <label>
      {label}
      <input name={name} defaultValue={search.get(name) ?? ""} spellCheck={false} autoCapitalize="off" />
    </label>
  );
}

export function CountField({ label, name, search }: FieldProps): ReactNode {
  return (
    <label>
      {label}
      <input name={name} type="number" min={0} defaultValue={search.get(name) ?? ""} />
    </label>
  );
}

export interface ChoiceFieldProps extends FieldProps {
  /** Each value with the text to show. */
  readonly choices: Readonly<Record<string, string>>;
}

export function ChoiceField({ label, name, search, choices }: ChoiceFieldProps): ReactNode {
  return (
    <label>
      {label}
      <select name={name} defaultValue={search.get(name) ?? ""}>
        <option value="">any</option>
        {Object.entries(choices).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
