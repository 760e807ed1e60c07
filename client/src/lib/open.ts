/**
 * A type of an answer as a newer broker may give it: each union of texts may have other members, so a `switch` over one needs a default. Fields are read-only.
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
