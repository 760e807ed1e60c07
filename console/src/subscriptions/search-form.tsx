import type { FormEvent, ReactNode } from "react";

export interface SearchFormProps {
  readonly onSearch: (search: URLSearchParams) => void;
  /** Named fields; the search leaves out the empty ones. */
  readonly children: ReactNode;
}

export function SearchForm({ onSearch, children }: SearchFormProps): ReactNode {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const entries = [...new FormData(event.currentTarget)].filter((entry): entry is [string, string] => {
      const [, value] = entry;
      return typeof value === "string" && value !== "";
    });
    onSearch(new URLSearchParams(entries));
  };
  return (
    <form className="fields" onSubmit={submit} role="search">
      {children}
      <button type="submit">Search</button>
    </form>
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
