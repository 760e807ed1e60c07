/**
 * The type of an answer that may come from a newer broker: each union of strings may get new members, so a `switch` over it needs a default. Fields are
 * read-only.
 */
export type Open<T> = T extends string
  ? string extends T
    ? T
    : T | (string & {})
  : T extends readonly (infer Item)[]
    ? readonly Open<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: Open<T[Name]> }
      : T;
