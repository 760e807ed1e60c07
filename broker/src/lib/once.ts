/** Builds a value when it is first asked for, and keeps it. A failed build is tried again by the next caller. */
export function once<Value>(build: () => Value): () => Value {
  let kept: { readonly value: Value } | undefined;
  return () => {
    kept ??= { value: build() };
    return kept.value;
  };
}
